// Loads the ops wherever TensorFlow is imported, so that an optimised SavedModel needs no import.
//
// TensorFlow loads each library in site-packages/tensorflow-plugins and cannot be imported where
// one of them fails. So this one depends on nothing of TensorFlow's: it asks the TensorFlow that is
// there for its version, and loads the ops beside it only into the one that they were built for.
// Where anything is missing or does not fit it does nothing.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// "2.21.0" -> major and minor; whether it has them.
static int Parse(const char* version, int* major, int* minor) {
  return version != NULL && sscanf(version, "%d.%d", major, minor) == 2;
}

static int FitsTensorFlow(const char* build_info) {
  // Loaded long since; RTLD_NOLOAD finds it whatever its symbols are visible to.
  void* core = dlopen("libtensorflow_cc.so.2", RTLD_LAZY | RTLD_NOLOAD);
  if (core == NULL) return 0;
  const char* (*version)(void) = NULL;
  *(void**)&version = dlsym(core, "TF_Version");
  int running[2], built[2], fits = 0;
  FILE* file = fopen(build_info, "r");
  if (file != NULL) {
    fits = version != NULL && Parse(version(), &running[0], &running[1]) &&
           fscanf(file, "{\"tensorflow\": \"%d.%d", &built[0], &built[1]) == 2 &&
           running[0] == built[0] && running[1] == built[1];
    fclose(file);
  }
  dlclose(core);
  return fits;
}

__attribute__((constructor)) static void Load(void) {
  const char* wanted = getenv("TF_BLOCKDNN_PLUGIN");
  if (wanted != NULL && strcmp(wanted, "0") == 0) return;
  Dl_info self;
  char path[PATH_MAX], native[PATH_MAX + 64], info[PATH_MAX + 96], library[PATH_MAX + 96];
  if (!dladdr((void*)&Load, &self) || realpath(self.dli_fname, path) == NULL) return;
  for (int folders = 0; folders < 2; ++folders) {  // site-packages/tensorflow-plugins/this
    char* slash = strrchr(path, '/');
    if (slash == NULL) return;
    *slash = '\0';
  }
  snprintf(native, sizeof(native), "%s/tf_blockdnn/_native", path);
  snprintf(info, sizeof(info), "%s/_build_info.json", native);
  snprintf(library, sizeof(library), "%s/libtf_blockdnn.so", native);
  // What does not load, does not; the error is for `import tf_blockdnn` to tell.
  if (FitsTensorFlow(info)) dlopen(library, RTLD_NOW | RTLD_LOCAL);
}
