#include "lictor/worker.h"

int main(int argc, char** argv) { return lictor::Worker{}.main(argc, argv); }
