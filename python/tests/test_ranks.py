"""One run over two processes that mpirun starts, with the bits of one."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

CODE = """
import sys, rws
from toys import Mixture, clusters
run = rws.train(Mixture(), data={"x": clusters()}, iterations=10, shards=4, progress=True, out=sys.argv[1])
sys.stdout.write(f"{rws.n_ranks()} {run.state_dict()['theta.prior'].tobytes().hex()}\\n")
sys.stdout.flush()
if sys.argv[2] == "fails":
    if rws.rank() == 1:
        raise RuntimeError("only here")
    rws.train(Mixture(), data={"x": clusters()}, iterations=10**7, shards=4)
"""


class Ranks(unittest.TestCase):
    def setUp(self):
        build = os.environ.get("RWS_TESTS_BUILD", "")
        if not shutil.which("mpirun.openmpi") or not os.path.exists(os.path.join(build, "librws-openmpi.so")):
            self.skipTest("Open MPI is not installed, or this build has no part for it")
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def run_as(self, n, name, how):
        path = [os.path.dirname(os.path.abspath(__file__))] + sys.path
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "OMPI_ALLOW_RUN_AS_ROOT": "1",
               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,vader,tcp", "OMPI_MCA_plm": "isolated",
               "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_rmaps_base_oversubscribe": "1",
               "OMPI_MCA_orte_tmpdir_base": self.folder}
        launcher = ["mpirun.openmpi", "-n", str(n)] if n > 1 else []
        return subprocess.run([*launcher, sys.executable, "-c", CODE, os.path.join(self.folder, name), how], env=env,
                              capture_output=True, text=True, timeout=120)

    def test_two(self):
        one, two = self.run_as(1, "one", ""), self.run_as(2, "two", "")
        self.assertEqual((one.returncode, two.returncode), (0, 0), two.stderr)
        said = one.stdout.split()
        self.assertEqual(said[0], "1")
        self.assertEqual(two.stdout.splitlines(), [f"2 {said[1]}"] * 2)
        self.assertEqual(two.stderr.count("] 5/10 "), 1, two.stderr)  # one bar: that of rank 0
        self.assertTrue(os.path.exists(os.path.join(self.folder, "two", "fields.json")))

    def test_exception(self):
        done = self.run_as(2, "run", "fails")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("only here", done.stderr)
