"""The live display: a line for the whole run, and one for each running job, with a bar if its log shows progress."""

import sys
import time

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from snakemake_logger_plugin_ghost.jobs import Run, duration

BAR_WIDTH = 20


class Display:
    """Draws a run on stderr until it is stopped. Texts are wrapped in `Text`, so that rich sees no markup in them."""

    def __init__(self, *, nocolor: bool = False) -> None:
        self.console = Console(stderr=True, no_color=nocolor or None, highlight=False)
        self.live: Live | None = None

    def start(self, run: Run) -> None:
        self.live = Live(
            get_renderable=lambda: render(run, time.time()),
            console=self.console,
            refresh_per_second=4,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),  # not if stdout is a file or a pipe
        )
        self.live.start()

    def say(self, text: str, style: str = "") -> None:
        """Print above the live lines."""
        self.console.print(Text(text, style), soft_wrap=True)

    def stop(self) -> None:
        if self.live:
            self.live.stop()


def render(run: Run, now_s: float) -> RenderableType:
    running = dict(run.running)
    progress = run.progress()
    jobs = Table.grid(padding=(0, 2, 0, 0), expand=True)
    jobs.add_column(no_wrap=True)
    jobs.add_column(justify="right", no_wrap=True)
    jobs.add_column(no_wrap=True)
    jobs.add_column(justify="right", no_wrap=True)
    jobs.add_column(no_wrap=True, ratio=1)  # on a narrow terminal the text is cut first
    for job_id, job in running.items():
        row: list[RenderableType] = [Text(f"  {job.label}", "cyan"), duration(now_s - job.start_s)]
        if job_id in progress:
            percent, text = progress[job_id]
            row += [ProgressBar(total=100, completed=percent, width=BAR_WIDTH), f"{percent}%", Text(text)]
        jobs.add_row(*row)
    line = run.summary(now_s, {job_id: percent for job_id, (percent, _) in progress.items()})
    summary = Text(line, "bold", no_wrap=True, overflow="ellipsis")
    return Group(summary, jobs, "")  # the empty line takes the terminal's echo of Ctrl-C
