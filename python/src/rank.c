/* rank.c - the processes that mpirun or srun started, which train one run together. */
#include "rwspy.h"

static PyObject *ranks_open(PyObject *module, PyObject *unused)
{
    rws_error err = {{0}};
    (void)module, (void)unused;
    if (!rwspy_outside_of_programs()) return NULL;
    rwspy_begin();
    const rws_status status = rws_ranks_open(&err);
    rwspy_end();
    if (status != RWS_OK) return rwspy_raise(NULL, status, &err);
    Py_RETURN_NONE;
}

static PyObject *ranks_close(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    rwspy_begin();
    rws_ranks_close();
    rwspy_end();
    Py_RETURN_NONE;
}

static PyObject *rank(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(rws_rank());
}

static PyObject *n_ranks(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(rws_n_ranks());
}

static PyObject *rank_lost(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(rws_rank_lost());
}

PyMethodDef rwspy_rank_functions[] = {
    {"rank", rank, METH_NOARGS,
     "rank()\n\nThe number of this process among those that mpirun or srun started: 0 for the one that shows and "
     "writes."},
    {"n_ranks", n_ranks, METH_NOARGS,
     "n_ranks()\n\nHow many processes train together; 1 before the first trainer is made."},
    {"_ranks_open", ranks_open, METH_NOARGS, NULL},
    {"_ranks_close", ranks_close, METH_NOARGS, NULL},
    {"_rank_lost", rank_lost, METH_NOARGS, NULL},
    {0},
};
