"""Runs all tests of the package and prints TAP, for meson. A file of tests alone: python tests/run.py NAME."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.environ.get("RWS_TESTS_ROOT", os.path.join(os.path.dirname(__file__), "..", "..")), "examples", "python"))


class Tap(unittest.TestResult):
    n = 0

    def _say(self, ok, test, extra=""):
        Tap.n += 1
        print(("ok" if ok else "not ok"), Tap.n, "-", test.id().split(".", 1)[1], extra, flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self._say(True, test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._say(True, test, "# SKIP " + reason)

    def _bad(self, test, err):
        print("# " + self._exc_info_to_string(err, test).replace("\n", "\n# "))
        self._say(False, test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._bad(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            print("# " + self._exc_info_to_string(err, test).replace("\n", "\n# "))

    def addError(self, test, err):
        super().addError(test, err)
        self._bad(test, err)


if __name__ == "__main__":
    names = sys.argv[1:]
    folder = os.path.dirname(os.path.abspath(__file__))
    if names:
        suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    else:
        suite = unittest.defaultTestLoader.discover(folder, pattern="test_*.py", top_level_dir=folder)
    print(f"1..{suite.countTestCases()}")
    result = Tap()
    suite.run(result)
    sys.exit(0 if result.wasSuccessful() else 1)
