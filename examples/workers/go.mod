module example.org/lictor-worker

go 1.19
