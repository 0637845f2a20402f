#include "app/command.h"

int main(int argc, char** argv) { return lictor::app::run_command(argc, argv, {}); }
