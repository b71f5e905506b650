"""What a row of the matrix says of a prediction. Run by `python3 -m unittest discover -s checks/kernel-truth/tests`."""

import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from matrix import table  # noqa: E402
from matrix.asking import Asking, Refused, flags_for  # noqa: E402
from matrix.quantities import counters, level, levels  # noqa: E402
from matrix.rows import COLUMNS, compare, judge, predicted  # noqa: E402
from matrix.runs import Run, shipped  # noqa: E402

import compare as program  # noqa: E402


def zone(blocks, unmovable=3):
    free = sum(n << o for o, n in enumerate(blocks))
    return {"free_blocks": blocks, "free_pages": free, "free_huge_blocks": sum(n << (o - 9) for o, n in enumerate(blocks) if o >= 9),
            "pageblocks": {"Unmovable": unmovable, "Movable": 9}}


def row(recorded, said, real, name="pgmigrate_success", again=None, bar=(None, None), own=False):
    again = again or (recorded, recorded)
    return {"quantity": name, "recorded_real": recorded, "predicted": said, "predicted_low": bar[0], "predicted_high": bar[1],
            "real_low": real[0], "real_high": real[1], "recorded_low": again[0], "recorded_high": again[1], "own": own, "fitted": False}


def judged(*arguments, verdict="no bar", **named):
    one = row(*arguments, **named)
    judge(one, (one["real_low"] + one["real_high"]) / 2, verdict)
    return one


class Judging(unittest.TestCase):
    def test_a_change_in_the_right_direction_is_right_however_large(self):
        self.assertEqual(judged(10000, 30000, (12000, 13000))["sign"], "right")
        self.assertEqual(judged(10000, 9000, (12000, 13000))["sign"], "wrong")

    def test_no_change_predicted_where_there_is_one_is_wrong(self):
        self.assertEqual(judged(10000, 10000, (12000, 13000))["sign"], "wrong")

    def test_differences_of_a_tenth_and_less_are_none(self):
        self.assertIsNone(judged(10000, 9000, (10900, 11000))["sign"])

    def test_kernels_whose_runs_overlap_do_not_differ(self):
        self.assertIsNone(judged(10000, 9000, (12000, 20000), again=(10000, 12500))["sign"])
        self.assertIsNone(judged(15000, 9000, (9000, 12000), again=(11000, 15000))["sign"])

    def test_a_few_requests_of_few_are_no_difference(self):
        self.assertIsNone(judged(0, 0, (3, 3), name="allocstall")["sign"])
        self.assertEqual(judged(0, 0, (30, 30), name="allocstall")["sign"], "wrong")

    def test_shares_are_of_what_was_said_and_of_how_often(self):
        rows = [judged(10000, 30000, (12000, 13000), verdict=v) for v in (None, "no bar", "no bar", None)]
        rows.append(judged(10000, 9000, (12000, 13000)))
        said = table.summary(rows, [])
        self.assertIn("where it says one: 2 of 3 (67 %)", said)
        self.assertIn("It says one for 3 of 5 (60 %)", said)

    def test_loads_whose_errors_made_the_bars_are_counted_apart(self):
        rows = [judged(1, 2, (1000, 2000), bar=(1400, 1600)), judged(1, 2, (1000, 2000), bar=(1, 2)), judged(1, 2, (1000, 2000), bar=(1400, 1600))]
        rows[0]["bar_known"] = True
        said = table.summary(rows, [])
        self.assertIn("1 of 2 (50 %) of loads that bars were not made with, 1 of 1 (100 %) of those", said)

    def test_who_cannot_say_is_neither_right_nor_wrong(self):
        self.assertEqual(judged(10000, 30000, (12000, 13000), verdict=None)["sign"], "cannot say")

    def test_the_recorded_kernel_itself_has_no_sign(self):
        self.assertIsNone(judged(10000, 30000, (12000, 13000), own=True)["sign"])

    def test_a_bar_holds_the_mean_of_the_runs_or_not(self):
        self.assertTrue(judged(1, 2, (1000, 2000), bar=(1400, 1600))["in_bar"])
        self.assertFalse(judged(1, 2, (1000, 2000), bar=(1000, 1400))["in_bar"])
        self.assertIsNone(judged(1, 2, (1000, 2000))["in_bar"])

    def test_errors_of_indexes_are_differences_and_of_counts_shares(self):
        self.assertAlmostEqual(judged(0.2, 0.5, (0.4, 0.4), name="unusable_3_end")["error"], 0.1)
        self.assertAlmostEqual(judged(1000, 1500, (1000, 1000))["error"], 0.5)


class Values(unittest.TestCase):
    def test_levels_are_of_all_zones_together(self):
        both = level([zone([4, 0, 0, 2] + [0] * 7), zone([0] * 10 + [1])])
        self.assertEqual(both["free_pages"], 4 + 16 + 1024)
        self.assertEqual(both["free_huge_blocks"], 2)
        self.assertAlmostEqual(both["unusable_3"], 4 / 1044)
        self.assertAlmostEqual(both["unusable_huge"], 20 / 1044)
        self.assertEqual(both["unmovable_blocks"], 6)

    def test_a_host_without_free_memory_has_no_index(self):
        self.assertIsNone(level([zone([0] * 11)])["unusable_3"])

    def test_means_leave_out_what_is_unknown(self):
        samples = [{"zones": [zone([0] * 11)]}, {"zones": [zone([8] + [0] * 10)]}]
        self.assertEqual(levels(samples)["unusable_3_mean"], 1.0)
        self.assertEqual(levels(samples)["free_pages_mean"], 4)

    def test_a_counter_that_a_kernel_lacks_is_unknown_and_not_zero(self):
        found = counters({"allocstall_dma32": 1, "allocstall_movable": 2}, {"allocstall_dma32": 4, "allocstall_movable": 4})
        self.assertEqual(found, {"allocstall": 5})

    def test_bars_and_verdicts_come_from_the_answer(self):
        answer = {"kernels": [{"samples": [{"zones": [zone([8] + [0] * 10)]}], "totals": {"allocstall": 7, "compact_stall": 3}, "what_if": {
            "changes": [{"name": "allocstall", "predicted": 9, "bar": [4, 20], "verdict": None}]}}]}
        self.assertEqual(predicted(answer)["allocstall"], (4, 9, 20, None))
        self.assertEqual(predicted(answer)["compact_stall"], (None, 3, None, "no bar"))


class Matrix(unittest.TestCase):
    """The whole way, with a command in the place of unfrag that answers what it is told to."""

    def setUp(self):
        self.out = tempfile.mkdtemp()
        os.mkdir(os.path.join(self.out, "recordings"))
        self.unfrag = os.path.join(self.out, "unfrag")
        answer = {"start": "occupancy", "recorded": [{"zones": [zone([8] + [0] * 10)]}], "kernels": [
            {"broke_down": None, "samples": [{"zones": [zone([8] + [0] * 10)]}], "totals": {"allocstall": 50, "fallbacks_recorded": 3}}]}
        with open(self.unfrag, "w") as file:
            file.write("#!/bin/sh\ncase \"$*\" in *lru_gen*|*refused*) echo \"error: lru_gen/enabled is not known\" >&2; exit 2;; esac\n")
            file.write("echo '%s'\n" % json.dumps(answer))
        os.chmod(self.unfrag, 0o755)

    def run_of(self, kernel, settings, n, stalls, values=""):
        name = "load-%s-%s-%d" % (kernel, settings.replace("/", "."), n)
        directory = os.path.join(self.out, "runs", name)
        for phase, count in (("begin", 0), ("end", stalls)):
            os.makedirs(os.path.join(directory, "phases", phase))
            with open(os.path.join(directory, "phases", phase, "vmstat"), "w") as file:
                file.write("allocstall_dma32 %d\npgsteal_kswapd %d\n" % (count, count))
            with open(os.path.join(directory, "phases", phase, "uptime"), "w") as file:
                file.write("7.00 9.00\n")
        for file_name in ("settings", "settings-end"):
            with open(os.path.join(directory, file_name), "w") as file:
                file.write(values)
        os.makedirs(os.path.join(directory, "phases", "fragmented"))
        with open(os.path.join(directory, "phases", "fragmented", "vmstat"), "w") as file:
            file.write("")
        with open(os.path.join(directory, "facts"), "w") as file:
            file.write("load\tload\nkernel\t%s\nsettings\t%s\nusual\t-\n" % (kernel, settings))
        open(os.path.join(self.out, "recordings", name + ".unfrag"), "w").close()
        return Run(self.out, name)

    def test_every_kernel_is_asked_of_every_other_and_each_setting_of_its_own_kernel(self):
        usual = "/proc/sys/vm/min_free_kbytes = 100\n"
        four = "/proc/sys/vm/min_free_kbytes = 400\n"
        runs = [self.run_of("6.1", "-", 1, 10, usual), self.run_of("6.1", "-", 2, 12, usual), self.run_of("6.12", "-", 1, 100, usual),
                self.run_of("6.1", "vm.min_free_kbytes=x4", 1, 1, four)]
        asked = []
        rows, unanswered = compare(runs, Asking(self.unfrag, self.out), lambda q: False, lambda q, f: asked.append((q[1:], f)))
        self.assertEqual(unanswered, [])
        self.assertEqual(sorted(asked), sorted([
            (("6.1", "-", "6.1", "-"), []),
            (("6.1", "-", "6.12", "-"), ["--kernel", "6.12"]),
            (("6.1", "-", "6.1", "vm.min_free_kbytes=x4"), ["--set", "vm.min_free_kbytes=400"]),
            (("6.12", "-", "6.1", "-"), ["--kernel", "6.1"]),
            (("6.12", "-", "6.12", "-"), []),
            (("6.1", "vm.min_free_kbytes=x4", "6.1", "-"), ["--set", "vm.min_free_kbytes=100"]),
            (("6.1", "vm.min_free_kbytes=x4", "6.1", "vm.min_free_kbytes=x4"), []),
        ]))
        stalls = {(r["kernel_recorded"], r["kernel_asked"], r["settings_asked"]): r for r in rows
                  if r["quantity"] == "allocstall" and not (r["own"] and r["settings_recorded"] != "-")}
        self.assertEqual(stalls["6.1", "6.12", "-"]["sign"], "right")
        self.assertEqual(stalls["6.12", "6.1", "-"]["real_low"], 10)
        self.assertEqual(stalls["6.12", "6.1", "-"]["real_high"], 12)
        self.assertEqual(stalls["6.1", "6.1", "vm.min_free_kbytes=x4"]["sign"], "wrong")
        self.assertEqual(stalls["6.1", "6.12", "-"]["pressure"], "reclaim")
        self.assertTrue(all(set(COLUMNS) <= set(r) for r in rows))
        shares = table.shares(rows)
        self.assertEqual((shares["right"], shares["wrong"]), (3, 1))
        for text in (table.text(rows, unanswered), table.page(rows, unanswered)):
            self.assertIn("3 of 4 (75 %)", text)

    def test_a_distributions_own_setting_is_left_out_where_it_cannot_be_asked_for(self):
        old = self.run_of("6.1", "-", 1, 10, "/sys/kernel/mm/lru_gen/enabled = 0x0000\n")
        new = self.run_of("6.12", "-", 1, 10, "/sys/kernel/mm/lru_gen/enabled = 0x0007\n")
        self.assertEqual(flags_for(old, new), ["--kernel", "6.12", "--set", "lru_gen/enabled=0x0007"])
        rows, unanswered = compare([old, new], Asking(self.unfrag, self.out), lambda q: False, lambda q, f: None)
        self.assertEqual(unanswered, [])
        self.assertTrue(rows)

    def test_a_recording_that_ships_is_asked_for_the_kernels_of_its_load(self):
        ships = shipped(os.path.join(os.path.dirname(os.path.abspath(program.__file__)), "shipped"), self.out)
        self.assertEqual([(s.load, s.kernel, s.settings) for s in ships], [("build", "6.1", "-")])
        runs = [self.run_of("6.1", "-", 1, 10), self.run_of("6.18", "-", 1, 100), self.run_of("6.18", "vm.swappiness=1", 1, 100)]
        rows, unanswered = compare(runs, Asking(self.unfrag, self.out), lambda q: False, lambda q, f: None, ships)
        self.assertEqual(unanswered, [])
        asked = {(r["kernel_recorded"], r["kernel_asked"], r["settings_asked"]) for r in rows if r["load"] == "build-sample"}
        self.assertEqual(asked, {("6.1", "6.18", "-")})
        # Its stalls are in no counter that was copied, and are not compared.
        self.assertNotIn("allocstall", {r["quantity"] for r in rows if r["load"] == "build-sample"})

    def test_a_question_that_is_refused_is_named_with_the_reason(self):
        old = self.run_of("6.1", "-", 1, 10)
        new = self.run_of("refused", "-", 1, 10)
        os.rename(new.recording, os.path.join(self.out, "recordings", "other.unfrag"))
        new.recording = os.path.join(self.out, "recordings", "other.unfrag")
        rows, unanswered = compare([old, new], Asking(self.unfrag, self.out), lambda q: False, lambda q, f: None)
        self.assertIn(("load", "6.1", "-", "refused", "-", "error: lru_gen/enabled is not known"), unanswered)
        self.assertIn("lru_gen/enabled is not known", table.page(rows, unanswered))
        for text in (table.text(rows, unanswered, [["kernel 9.9", "no package"]]), table.page(rows, unanswered, [["kernel 9.9", "no package"]])):
            self.assertRegex(text, "kernel 9.9.*no package")

    def test_what_a_load_sets_in_its_midst_is_asked_for_from_then_on(self):
        path = "/proc/sys/vm/compaction_proactiveness = %d\n"
        never = self.run_of("6.1", "vm.compaction_proactiveness=0", 1, 1, path % 0)
        eighty = self.run_of("6.1", "vm.compaction_proactiveness=80", 1, 1, path % 80)
        with open(os.path.join(eighty.directory, "settings"), "w") as file:
            file.write(path % 0)
        for run in (never, eighty):
            for name, content in (("vmstat", ""), ("uptime", "17.25 3.00\n")):
                with open(os.path.join(run.directory, "phases", "fragmented", name), "w") as file:
                    file.write(content)
        self.assertEqual(flags_for(never, eighty), ["--set", "vm.compaction_proactiveness=80@12.2"])
        self.assertEqual(flags_for(eighty, never), ["--set", "vm.compaction_proactiveness=0"])

    def test_a_model_that_breaks_down_has_no_row(self):
        with open(self.unfrag, "w") as file:
            file.write("#!/bin/sh\necho '%s'\n" % json.dumps({"recorded": [], "kernels": [{"broke_down": "no memory"}]}))
        with self.assertRaisesRegex(Refused, "broke down: no memory"):
            Asking(self.unfrag, self.out).replay("r.unfrag", [])

    def test_fitted_recordings_are_marked_whichever_side_they_are_on(self):
        path = os.path.join(self.out, "fitted")
        with open(path, "w") as file:
            file.write("# why\nservice 6.12 *\n")
        fitted = program.fitted_by(path)
        self.assertTrue(fitted(("service", "6.12", "-", "6.1", "-")))
        self.assertTrue(fitted(("service", "6.1", "-", "6.12", "-")))
        self.assertFalse(fitted(("service", "6.1", "-", "6.18", "-")))
        self.assertEqual(program.loads_of(path), {"service 6.12 *"})
        self.assertEqual(program.loads_of(None), set())
        self.assertFalse(program.fitted_by(os.path.join(self.out, "none"))(("a", "b", "c", "d", "e")))


if __name__ == "__main__":
    unittest.main()
