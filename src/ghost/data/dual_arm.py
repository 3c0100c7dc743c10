"""The dual-arm stand-in: a LeRobot v3.0 data set in place of the authors' 2,196 private episodes.

It was DESIGNED AND FROZEN before any decoder was compared on it, and it is never tuned to make one of them win. Only an
error in what it claims below may change it, never a result. Numbers measured on it never reproduce a published number.

From the paper it takes ten tasks and their names, five scene types, the number of episodes, 17 action dimensions (7
left arm, 1 left gripper, 7 right arm, 1 right gripper, 1 lift), a lift command that is nearly always -1, and min-max
normalised values. The rest is invented:

* An episode brings one object to one target. The hand moves through four sub-phases (approach, grasp, lift, place),
  each a minimum-jerk movement. The gripper snaps shut during the grasp and open at the end of the place.
* For each arm a fixed random smooth map turns hand position and wrist angle into seven joints. This is the robot:
  `robot_seed` draws it, the same for every seed of the data.
* There is more than one way to act: with either arm (the nearer one is likelier), and from either of two sides (in most
  tasks by a coin). The choice is drawn per episode, and no observation shows it before the arm moves.
* Tasks differ in how much all this varies: Take_book varies little, Tidy_conf_room much (`TASKS`).
* action[t] is the command for the next step. The state is what the sensors measure now, with a little noise.
* There are no videos. observation.scene.* hold what a camera would show, and the stand-in backbone sees nothing else.

meta/normalisation.json has the raw values of -1 and 1: for joints the smallest and largest of the whole data set, for
grippers and lift their travel. `way/*` in meta/episodes hold the hidden choices, for tests and plots only.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ghost.data.lerobot import ACTION, STATE
from ghost.data.lerobot_writer import Recording, write_dataset
from ghost.data.normalisation import FILE as NORMALISATION
from ghost.data.normalisation import Normalisation, Scale, numbered
from ghost.data.results import Measured, Outcome
from ghost.files import write_json
from ghost.runs.settings import at_least, at_least_one, not_negative

FOLDER = "dataset"  # below the run's folder

# Action dimensions, also those of the state.
LEFT_ARM, LEFT_GRIPPER, RIGHT_ARM, RIGHT_GRIPPER, LIFT = tuple(range(7)), (7,), tuple(range(8, 15)), (15,), (16,)
ARM, GRIPPER = (*LEFT_ARM, *RIGHT_ARM), (*LEFT_GRIPPER, *RIGHT_GRIPPER)
GROUPS = {"arm": ARM, "gripper": GRIPPER, "lift": LIFT}
DIMENSIONS = 17
PHASES = ("approach", "grasp", "lift", "place")

GRIPPER_TRAVEL_M = (0.0, 0.08)  # shut, open
LIFT_TRAVEL_M = (0.0, 0.4)
TRAVELS = ((GRIPPER, GRIPPER_TRAVEL_M), (LIFT, LIFT_TRAVEL_M))
HOMES = np.array([[-0.5, -0.6, 0.3], [0.5, -0.6, 0.3]])  # of the left and the right hand; the desk is [-1, 1]²


@dataclass(frozen=True)
class Task:
    """How one task is done, and how much that varies from episode to episode."""

    name: str
    scene: str
    object_at: tuple[float, float, float]
    target_at: tuple[float, float, float]
    spread: float  # half-width of the region in which object and target lie
    nearer_arm: float  # how surely the arm on the object's side acts: 0 is a coin, a large value always
    one_side: float  # how often the hand comes from the right
    tempo: float  # relative spread of the sub-phases' durations
    style: float  # how far the hand's path bulges, in a random direction
    support: float  # how far the other hand comes along
    shelf: float = 0.0  # share of episodes with a target so high that the lift must rise


TASKS = (
    Task("Arrange_cups", "table", (-0.3, 0.1, 0.0), (0.3, 0.4, 0.0), 0.35, 2.0, 0.5, 0.20, 0.10, 0.2),
    Task("Move_parts", "workshop", (0.5, 0.3, 0.1), (-0.5, 0.3, 0.1), 0.20, 4.0, 0.8, 0.10, 0.04, 0.0),
    Task("Stack_cups", "table", (0.3, 0.2, 0.0), (0.0, 0.3, 0.3), 0.30, 2.0, 0.5, 0.15, 0.08, 0.4),
    Task("Tidy_counter", "kitchen", (-0.4, 0.4, 0.0), (0.6, 0.0, 0.2), 0.35, 3.0, 0.6, 0.20, 0.10, 0.1, shelf=0.10),
    Task("Organize_toys", "home", (0.2, -0.1, 0.0), (-0.6, 0.2, 0.1), 0.40, 1.0, 0.5, 0.25, 0.12, 0.2),
    Task("Organize_tools", "workshop", (-0.5, 0.0, 0.0), (0.1, 0.5, 0.1), 0.25, 3.0, 0.7, 0.15, 0.06, 0.0),
    Task("Take_book", "home", (0.4, 0.5, 0.4), (0.4, -0.2, 0.1), 0.10, 8.0, 0.95, 0.05, 0.02, 0.0),
    Task("Tidy_conf_room", "room", (0.0, 0.0, 0.0), (0.0, 0.5, 0.1), 0.55, 0.5, 0.5, 0.30, 0.16, 0.3),
    Task("Clean_store", "room", (-0.2, 0.3, 0.1), (0.5, 0.5, 0.3), 0.30, 2.0, 0.5, 0.20, 0.08, 0.1, shelf=0.25),
    Task("Make_toast", "kitchen", (-0.6, 0.2, 0.1), (-0.1, 0.2, 0.2), 0.20, 4.0, 0.7, 0.10, 0.05, 0.3),
)
SCENES = tuple(dict.fromkeys(task.scene for task in TASKS))
SHARES = np.array([0.4, 0.15, 0.15, 0.3])  # of the episode's time, for each phase
SHUTS_AT, OPENS_AT = 0.6, 0.85  # as shares of the grasp and of the place


@dataclass(frozen=True)
class Settings:
    episodes: int
    steps: int  # of an episode, on average
    fps: int
    robot_seed: int  # draws the kinematic maps, that is, the robot
    state_noise: float  # of the joint sensors, where 1 is about half their range
    scene_noise: float  # of the positions that the camera shows; the desk is 2 wide
    episodes_per_file: int

    def __post_init__(self) -> None:
        if self.episodes < len(TASKS):
            raise ValueError(f"episodes must be at least {len(TASKS)}, one per task, got {self.episodes}")
        at_least(20, self, "steps")  # five per sub-phase
        at_least_one(self, "fps", "episodes_per_file")
        not_negative(self, "state_noise", "scene_noise")


def make(settings: Settings, *, seed: int, folder: Path) -> Outcome:
    """Write the data set into the run's folder."""
    episodes, normalisation = generate(settings, seed)
    root = folder / FOLDER
    names = write_dataset(
        root,
        [episode.recording() for episode in episodes],
        fps=settings.fps,
        robot="dual-arm stand-in",
        episodes_per_file=settings.episodes_per_file,
        tasks=[task.name for task in TASKS],
    )
    write_json(root / NORMALISATION, normalisation.plain())
    lengths = np.array([len(episode.action) for episode in episodes])
    tasks = np.array([episode.task for episode in episodes])
    measured = [Measured("all", "episodes", len(episodes)), Measured("all", "steps", int(lengths.sum()))]
    for index, task in enumerate(TASKS):
        own = lengths[tasks == index]
        measured += [Measured(task.name, "episodes", len(own)), Measured(task.name, "steps", float(own.sum()))]
    return Outcome(measured, files=tuple(f"{FOLDER}/{name}" for name in (*names, NORMALISATION)))


@dataclass(frozen=True)
class Demonstration:
    """One generated episode of S steps."""

    task: int
    arm: int  # a hidden choice: 0 left, 1 right
    side: int  # a hidden choice: -1 or 1
    state: np.ndarray  # [S, 17] float32 in [-1, 1]
    action: np.ndarray  # [S, 17] float32 in [-1, 1]
    phase: np.ndarray  # [S] int64
    scene: dict[str, np.ndarray]  # each [S, ...] float32

    def recording(self) -> Recording:
        scene = {f"observation.scene.{name}": value for name, value in self.scene.items()}
        columns = {STATE: self.state, ACTION: self.action, **scene, "phase": self.phase}
        return Recording(TASKS[self.task].name, columns, facts={"way/arm": self.arm, "way/side": self.side})


@dataclass(frozen=True)
class Plans:
    """The random choices of each episode, drawn before anything moves. E episodes."""

    task: np.ndarray  # [E]
    thing: np.ndarray  # [E, 3]: the object's position
    target: np.ndarray  # [E, 3]
    height_m: np.ndarray  # [E]: by how much the lift must rise
    arm: np.ndarray  # [E]: 0 left, 1 right
    side: np.ndarray  # [E]: -1 or 1
    home: np.ndarray  # [E, 2, 3]: the hands' first positions
    bulge: np.ndarray  # [E, 4, 3]: of the path, for each sub-phase
    durations: np.ndarray  # [E, 4]: of the sub-phases, in steps
    support: np.ndarray  # [E]
    distractors: np.ndarray  # [E, 6]
    lighting: np.ndarray  # [E, 2]
    place: np.ndarray  # [E]: kind of room


@dataclass(frozen=True)
class Motion:
    """The exact motion. The longest episode has S steps; after its end an episode stands still."""

    phase: np.ndarray  # [E, S + 1]
    thing: np.ndarray  # [E, S + 1, 3]: the object's position
    hands: np.ndarray  # [E, S + 1, 2, 3]
    reference: np.ndarray  # [E, S + 1, 17]: the robot's dimensions in raw units, with the grippers as commanded


def generate(settings: Settings, seed: int) -> tuple[list[Demonstration], Normalisation]:
    """All episodes in a random order of tasks, and how their values are normalised."""
    rng = np.random.default_rng(seed)
    plans = draw_plans(settings, rng)
    motion = move(plans, settings.robot_seed)
    command = motion.reference[:, 1:]  # [E, S, 17]: action[t] is the position at t + 1
    measured, aperture = sense(motion.reference, settings.state_noise, rng)
    scene = show(plans, motion, aperture, settings.scene_noise, rng)

    lengths = plans.durations.sum(axis=1)
    inside = np.arange(command.shape[1]) < lengths[:, None]
    normalisation = Normalisation("limits", _scale("state", measured[inside]), _scale("action", command[inside]))
    state = np.clip(normalisation.state.apply(measured), -1, 1)  # also past an episode's end, where nothing is recorded
    action = np.clip(normalisation.action.apply(command), -1, 1)
    episodes = [
        Demonstration(
            task=int(plans.task[e]),
            arm=int(plans.arm[e]),
            side=int(plans.side[e]),
            state=state[e, :n],
            action=action[e, :n],
            phase=motion.phase[e, :n].astype(np.int64),
            scene={name: value[e, :n] for name, value in scene.items()},
        )
        for e, n in enumerate(lengths)
    ]
    return episodes, normalisation


def draw_plans(settings: Settings, rng: np.random.Generator) -> Plans:
    s, E = settings, settings.episodes
    task = rng.permutation(np.arange(E) % len(TASKS))  # as many of each as possible

    def each(name: str) -> np.ndarray:
        return np.array([getattr(TASKS[index], name) for index in task], dtype=np.float64)

    spread = each("spread")[:, None] * np.array([1.0, 1.0, 0.2])  # things lie on surfaces, so heights vary little
    thing = each("object_at") + spread * rng.uniform(-1, 1, (E, 3))
    target = each("target_at") + spread * rng.uniform(-1, 1, (E, 3))
    high = rng.random(E) < each("shelf")
    target[:, 2] += np.where(high, rng.uniform(0.5, 0.8, E), 0.0)
    tempo = each("tempo")[:, None]
    whole = tempo * rng.uniform(-1, 1, (E, 1))  # the whole episode is slow or fast, and so is each sub-phase
    durations = s.steps * SHARES * np.exp(whole + tempo * rng.uniform(-0.5, 0.5, (E, len(PHASES))))
    return Plans(
        task=task,
        thing=thing,
        target=target,
        height_m=np.where(high, 0.4 * (target[:, 2] - 0.2), 0.0),  # at most 0.39, within the travel
        arm=(rng.random(E) < 1 / (1 + np.exp(-4 * each("nearer_arm") * thing[:, 0]))).astype(int),
        side=np.where(rng.random(E) < each("one_side"), 1, -1),
        home=HOMES + 0.03 * rng.standard_normal((E, 2, 3)),
        bulge=each("style")[:, None, None] * rng.standard_normal((E, len(PHASES), 3)),
        durations=np.maximum(3, np.round(durations)).astype(int),
        support=each("support"),
        distractors=(rng.uniform(-1, 1, (E, 2, 3)) * np.array([0.8, 0.6, 0.1])).reshape(E, 6),
        lighting=rng.uniform(-1, 1, (E, 2)),
        place=np.array([SCENES.index(TASKS[index].scene) for index in task]),
    )


def move(plans: Plans, robot_seed: int) -> Motion:
    """The paths of the hands, sub-phase by sub-phase, and the joints, for all episodes at once."""
    p, E = plans, len(plans.task)
    every, lengths, ends = np.arange(E), p.durations.sum(axis=1), p.durations.cumsum(axis=1)
    clock = np.minimum(np.arange(lengths.max() + 1), lengths[:, None])  # [E, S + 1]
    phase = np.minimum((clock[:, :, None] >= ends[:, None, :]).sum(axis=2), len(PHASES) - 1)
    now = (every[:, None], phase)
    within = (clock - (ends - p.durations)[now]) / p.durations[now]  # [E, S + 1]: 0 to 1 in its sub-phase
    done = minimum_jerk(within)

    # The acting hand: home -> beside and above the object -> at it -> lifted -> target.
    right = p.side[:, None] * np.array([1.0, 0.0, 0.0])  # [E, 3]: towards the side from which it comes
    beside = p.thing + 0.15 * right + np.array([0.0, 0.0, 0.15])
    lifted = p.thing + np.array([0.0, 0.0, 0.4])
    waypoints = np.stack([p.home[every, p.arm], beside, p.thing, lifted, p.target], axis=1)  # [E, 5, 3]
    start, end = waypoints[now], waypoints[every[:, None], phase + 1]
    bulge = p.bulge.copy()
    bulge[:, 0] += 0.25 * right
    around = 64 * (within * (1 - within)) ** 3  # 1 halfway, and as flat at its ends as the movement itself
    hand = start + (end - start) * done[..., None] + around[..., None] * bulge[now]  # [E, S + 1, 3]
    wrist = p.side[:, None] * np.where(phase == 0, done, 1.0)  # turned to its side in the approach

    # The other hand comes along a little and goes back.
    home = p.home[every, 1 - p.arm][:, None]
    along = p.support[:, None] * np.sin(np.pi * minimum_jerk(clock / lengths[:, None]))
    other = home + along[..., None] * (p.thing[:, None] - home)

    acting = p.arm[:, None, None] == np.arange(2)  # [E, 1, 2]
    hands = np.where(acting[..., None], hand[:, :, None], other[:, :, None])
    wrists = np.where(acting, wrist[:, :, None], 0.0)
    robot = np.random.default_rng(robot_seed)
    holds = ((phase == 1) & (within >= SHUTS_AT)) | (phase == 2) | ((phase == 3) & (within < OPENS_AT))
    reference = np.empty((*phase.shape, DIMENSIONS))
    joints = [kinematics(robot, hands[:, :, k], wrists[:, :, k]) for k in range(2)]
    reference[..., ARM] = np.concatenate(joints, axis=-1)
    reference[..., GRIPPER] = np.where(holds[..., None] & acting, *GRIPPER_TRAVEL_M)
    reference[..., LIFT] = (np.where(phase == 2, done, phase == 3) * p.height_m[:, None])[..., None]
    carried, placed = holds & (phase >= 2), (phase == 3) & ~holds
    thing = np.where(carried[..., None], hand, np.where(placed[..., None], p.target[:, None], p.thing[:, None]))
    return Motion(phase, thing, hands, reference)


def sense(reference: np.ndarray, sigma: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The sensors' values [E, S, 17], and how far the grippers really are open, -1 to 1 [E, S, 2]."""
    command, measured = reference[:, 1:], reference[:, :-1].copy()
    for step in range(1, measured.shape[1]):  # in one step a gripper goes a third of its remaining way
        before = measured[:, step - 1, GRIPPER]
        measured[:, step, GRIPPER] = before + (command[:, step - 1, GRIPPER] - before) / 3
    aperture = 2 * measured[..., GRIPPER] / GRIPPER_TRAVEL_M[1] - 1
    noise = np.full(DIMENSIONS, sigma)
    for dimensions, travel in TRAVELS:
        noise[list(dimensions)] *= travel[1] / 2
    measured += noise * rng.standard_normal(measured.shape)
    for dimensions, travel in TRAVELS:
        measured[..., dimensions] = np.clip(measured[..., dimensions], *travel)  # no sensor exceeds the travel
    return measured, aperture


def show(
    plans: Plans, motion: Motion, aperture: np.ndarray, sigma: float, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """What a camera would show at each step [E, S, ...]: only the present positions."""
    E, S = aperture.shape[:2]

    def noisy(shown: np.ndarray) -> np.ndarray:
        whole = np.broadcast_to(shown, (E, S, shown.shape[-1]))
        return (whole + sigma * rng.standard_normal(whole.shape)).astype(np.float32)

    return {
        "object": noisy(motion.thing[:, :-1]),
        "target": noisy(plans.target[:, None]),
        "distractors": noisy(plans.distractors[:, None]),
        "hands": noisy(motion.hands[:, :-1].reshape(E, S, 6)),
        "grippers": noisy(aperture),
        "lighting": np.broadcast_to(plans.lighting[:, None], (E, S, 2)).astype(np.float32),
        "place": np.broadcast_to(plans.place[:, None], (E, S)),
    }


def minimum_jerk(s: np.ndarray) -> np.ndarray:
    """From 0 to 1 as s goes from 0 to 1, without speed and acceleration at the ends."""
    return np.asarray(s**3 * (10 - 15 * s + 6 * s**2))


def kinematics(robot: np.random.Generator, hand: np.ndarray, wrist: np.ndarray) -> np.ndarray:
    """A random, smooth, bounded map from hand position [..., 3] and wrist angle [...] to seven joints [..., 7]."""
    hidden = 16
    w1, b1 = robot.standard_normal((4, hidden)), 0.5 * robot.standard_normal(hidden)
    w2 = robot.standard_normal((hidden, 7)) / np.sqrt(hidden)
    u = np.concatenate([hand, 0.5 * wrist[..., None]], axis=-1)
    return np.asarray(np.tanh(np.tanh(0.7 * (u @ w1) + b1) @ w2))


def _scale(kind: str, raw: np.ndarray) -> Scale:
    """The raw values of -1 and 1 for each dimension [17]."""
    low, high = raw.min(axis=0), raw.max(axis=0)
    for dimensions, travel in TRAVELS:
        low[list(dimensions)], high[list(dimensions)] = travel
    return Scale(numbered(kind, len(low)), low, high, GROUPS)
