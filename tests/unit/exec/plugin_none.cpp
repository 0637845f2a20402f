extern "C" int some_library();
extern "C" int some_library() { return 1; }
