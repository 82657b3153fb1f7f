/* layer.c - what all layers have in common. */
#include "nn/layer.h"

#include "base/error.h"

#include <string.h>

void *rws__layer_new(rws_setup *s, const rws_layer_kind *kind, size_t bytes, const char *name, int n_in, int n_out)
{
    if (!name && s->status == RWS_OK)
        s->status = rws_fail(&s->error, RWS_BAD_INPUT, "A layer of kind %s is declared without a name.", kind->name);
    if (!name) name = "";
    static _Thread_local _Alignas(16) char nothing[256]; /* the result without memory; the setup has failed then */
    rws_layer                             *l = rws_setup_alloc(s, bytes);
    char                                  *copy = rws_setup_alloc(s, strlen(name) + 1);
    RWS_CHECK(bytes <= sizeof nothing);
    if (!l) l = memset(nothing, 0, sizeof nothing);
    *l = (rws_layer){kind, copy ? strcpy(copy, name) : "", n_in, n_out};
    return l;
}

const void *rws__layer_expect(rws_path *path, const rws_layer *l, const rws_layer_kind *kind)
{
    if (!l) rws__path_mistake(path, "rws_%s was given NULL in place of a layer.", kind->name);
    if (l->kind != kind)
        rws__path_mistake(path, "rws_%s takes a layer of kind %s, but \"%s\" is of kind %s.", kind->name, kind->name,
                          l->name, l->kind->name);
    return l;
}
