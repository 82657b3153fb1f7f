#include "store/checkpoint_file.h"

const char rws_checkpoint_name[] = "checkpoint.safetensors";
const char rws_checkpoint_previous_name[] = "checkpoint.previous.safetensors";

rws_status rws__checkpoint_write(const char *path, const rws_tensor_out *tensors, size_t n, json_t *metadata,
                                 rws_error *err)
{
    return rws__safetensors_write(path, tensors, n, metadata, err);
}

rws_status rws__checkpoint_open(const char *path, rws_checkpoint_file **out, rws_error *err)
{
    return rws__safetensors_open(path, out, err);
}

void rws__checkpoint_close(rws_checkpoint_file *c)
{
    rws__safetensors_close(c);
}

rws_status rws__checkpoint_verify(const rws_checkpoint_file *c, rws_error *err)
{
    return rws__safetensors_verify(c, err);
}

const char *rws__checkpoint_metadata(const rws_checkpoint_file *c, const char *key)
{
    return rws__safetensors_metadata(c, key);
}

const rws_tensor_in *rws__checkpoint_tensor(const rws_checkpoint_file *c, size_t i)
{
    return i < rws__safetensors_count(c) ? rws__safetensors_at(c, i) : NULL;
}

const rws_tensor_in *rws__checkpoint_find(const rws_checkpoint_file *c, const char *name)
{
    return rws__safetensors_find(c, name);
}

rws_status rws__checkpoint_expect(const rws_checkpoint_file *c, const rws_tensor_out *like, const rws_tensor_in **out,
                                  rws_error *err)
{
    return rws__safetensors_expect(c, like->name, like->dtype, like->n_dims, like->shape, out, err);
}
