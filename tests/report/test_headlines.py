"""Headlines: one small file of metrics per method, with unrounded values."""

import json

from ghost.report.headlines import chosen, metric_names, metric_texts


def test_a_file_per_method_has_its_headlines():
    values = {identity: number / 7 for number, (_, _, identity, _) in enumerate(chosen())}
    texts = metric_texts({identity: {"value": value} for identity, value in values.items()})
    assert sorted(texts) == metric_names()
    assert json.loads(texts["Ghost.json"]) == {
        f"{table}.{metric}": values[f"{table.replace('_', ':', 1)}/Ghost/{metric}"]
        for table, metric in (("tab_lightweight", "test_mse"), ("tab_meta_rl", "latency"), ("tab_libero10", "success"))
    }
    assert sum(len(json.loads(text)) for text in texts.values()) == len(values)


def test_a_cell_without_a_value_is_no_metric():
    texts = metric_texts({"tab:lightweight/CVAE/test_mse": {"value": None}})
    assert {json.dumps(json.loads(text)) for text in texts.values()} == {"{}"}
