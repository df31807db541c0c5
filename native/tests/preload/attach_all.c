// Preloaded into a program that uses ggml: attaches every device of its ggml as soon as the program asks for devices, with nothing
// registered. The program need not know of ggml-ext. See README.md.

#define _GNU_SOURCE
#include "ggml-ext.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct ggml_backend_device * device_t;
typedef struct ggml_backend *        backend_t;

// ggml's own function, behind ours
static void (*original(const char * name))(void) {
    void * symbol = dlsym(RTLD_NEXT, name);
    if (symbol == NULL) {
        fprintf(stderr, "ggml-ext-attach: this ggml has no %s\n", name);
        exit(2);
    }
    void (*function)(void);
    *(void **) &function = symbol;
    return function;
}

static pthread_mutex_t    mutex      = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool inside     = false; // loading ggml-ext asks for devices itself
static size_t             n_attached = 0;

static void attach_all(void) {
    if (inside) {
        return;
    }
    size_t (*count)(void)          = (size_t (*)(void)) original("ggml_backend_dev_count");
    device_t (*get)(size_t)        = (device_t(*)(size_t)) original("ggml_backend_dev_get");
    const char * (*name)(device_t) = (const char * (*) (device_t)) original("ggml_backend_dev_name");

    pthread_mutex_lock(&mutex);
    inside = true;
    for (; n_attached < count(); ++n_attached) { // more backends may have been loaded since the last call
        device_t device = get(n_attached);
        int      status = ggml_ext_is_loaded() ? GGML_EXT_STATUS_SUCCESS : ggml_ext_load(NULL);
        if (status == GGML_EXT_STATUS_SUCCESS) {
            status = ggml_ext_attach_device(device);
        }
        if (status == GGML_EXT_STATUS_SUCCESS) {
            fprintf(stderr, "ggml-ext-attach: attached %s\n", name(device));
        } else {
            fprintf(stderr, "ggml-ext-attach: %s stays as it is: %s: %s\n", name(device), ggml_ext_status_name(status),
                    ggml_ext_last_error());
        }
    }
    inside = false;
    pthread_mutex_unlock(&mutex);
}

GGML_EXT_API size_t ggml_backend_dev_count(void) {
    attach_all();
    return ((size_t (*)(void)) original("ggml_backend_dev_count"))();
}

GGML_EXT_API device_t ggml_backend_dev_get(size_t index) {
    attach_all();
    return ((device_t(*)(size_t)) original("ggml_backend_dev_get"))(index);
}

GGML_EXT_API device_t ggml_backend_dev_by_name(const char * name) {
    attach_all();
    return ((device_t(*)(const char *)) original("ggml_backend_dev_by_name"))(name);
}

GGML_EXT_API device_t ggml_backend_dev_by_type(int type) {
    attach_all();
    return ((device_t(*)(int)) original("ggml_backend_dev_by_type"))(type);
}

GGML_EXT_API backend_t ggml_backend_init_by_name(const char * name, const char * params) {
    attach_all();
    return ((backend_t(*)(const char *, const char *)) original("ggml_backend_init_by_name"))(name, params);
}

GGML_EXT_API backend_t ggml_backend_init_by_type(int type, const char * params) {
    attach_all();
    return ((backend_t(*)(int, const char *)) original("ggml_backend_init_by_type"))(type, params);
}

GGML_EXT_API backend_t ggml_backend_init_best(void) {
    attach_all();
    return ((backend_t(*)(void)) original("ggml_backend_init_best"))();
}
