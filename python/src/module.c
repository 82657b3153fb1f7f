/* module.c - the extension module rws._rws. */
#include "rwspy.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

PyObject *rwspy_Error, *rwspy_Stopped, *rwspy_Abandoned, *rwspy_Broken, *rwspy_helpers;

PyObject *rwspy_helper(const char *name)
{
    if (!rwspy_helpers) rwspy_helpers = PyImport_ImportModule("rws._helpers");
    return rwspy_helpers ? PyObject_GetAttrString(rwspy_helpers, name) : NULL;
}

PyObject *rwspy_text(const char *text)
{
    return text ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace") : Py_NewRef(Py_None);
}

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "rws._rws",
    .m_doc = "The engine of the package rws, on the C library's two public headers.",
    .m_size = -1,
    .m_methods = rwspy_functions,
};

static bool add_exception(PyObject *m, PyObject **to, const char *name, PyObject *base, const char *doc)
{
    char full[64];
    snprintf(full, sizeof full, "rws.%s", name);
    *to = PyErr_NewExceptionWithDoc(full, doc, base, NULL);
    return *to && PyModule_AddObjectRef(m, name, *to) == 0;
}

PyMODINIT_FUNC PyInit__rws(void)
{
    static const struct {
        const char   *name;
        PyTypeObject *type;
    } types[] = {
        {"Scope", &rwspy_Scope},     {"Value", &rwspy_Value},         {"Param", &rwspy_Param},
        {"Layer", &rwspy_Layer},     {"Numbers", &rwspy_Numbers},     {"Path", &rwspy_Path},
        {"Setup", &rwspy_Setup},     {"Table", &rwspy_Table},         {"Random", &rwspy_Random},
        {"Trainer", &rwspy_Trainer}, {"Posterior", &rwspy_Posterior}, {"Program", &rwspy_Program},
        {"Eval", &rwspy_Eval},       {"Particle", &rwspy_Particle},   {"Family", &rwspy_Family},
    };
    PyObject   *m = PyModule_Create(&module);
    const char *replay = getenv("RWS_PYTHON_REPLAY");
    if (!m) return NULL;
    rwspy_param_ready();
    if (!add_exception(m, &rwspy_Error, "Error", PyExc_ValueError,
                       "A mistake that the library found: in a model, a program, an option, a file or the data.") ||
        !add_exception(m, &rwspy_Broken, "Broken", PyExc_ArithmeticError,
                       "A numerical failure: a NaN, or every particle impossible.") ||
        !add_exception(m, &rwspy_Stopped, "Stopped", PyExc_RuntimeError, "Training was stopped on request.") ||
        !add_exception(m, &rwspy_Abandoned, "Abandoned", PyExc_BaseException,
                       "Raised in a program whose pass has failed elsewhere, so that it ends. Let it pass."))
        goto fail;
    if (PyModule_AddFunctions(m, rwspy_answer_functions) != 0 ||
        PyModule_AddFunctions(m, rwspy_result_functions) != 0 || PyModule_AddFunctions(m, rwspy_rank_functions) != 0)
        goto fail;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (PyType_Ready(types[i].type) != 0 || PyModule_AddObjectRef(m, types[i].name, (PyObject *)types[i].type) != 0)
            goto fail;
    /* numpy leaves operators with arrays on the left to the value on the right */
    if (PyDict_SetItemString(rwspy_Value.tp_dict, "__array_ufunc__", Py_None) != 0 ||
        PyDict_SetItemString(rwspy_Param.tp_dict, "__array_ufunc__", Py_None) != 0)
        goto fail;
    PyType_Modified(&rwspy_Value);
    PyType_Modified(&rwspy_Param);
    if (!rwspy_host_init(replay && *replay && strcmp(replay, "0") != 0)) goto fail;
    if (PyModule_AddStringConstant(m, "version", rws_version()) != 0 ||
        PyModule_AddObjectRef(m, "replays", rwspy_replays() ? Py_True : Py_False) != 0)
        goto fail;
    /* Models in shared objects find the library's functions among the names of the process. */
    Dl_info where;
    if (dladdr((void *)rws_version, &where) && where.dli_fname)
        dlopen(where.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
    return m;
fail:
    Py_DECREF(m);
    return NULL;
}
