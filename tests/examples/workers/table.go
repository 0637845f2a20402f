package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	err := Serve(map[string]Job{
		"Echo": func(_ context.Context, run *Run) (any, error) {
			var task struct{ TaskPara struct{ Text string } }
			if err := json.Unmarshal(run.Task, &task); err != nil {
				return nil, err
			}
			fmt.Println("said", run.ID)
			return map[string]any{"text": task.TaskPara.Text, "number": run.Number, "token": run.FencingToken}, nil
		},
		"Fail": func(context.Context, *Run) (any, error) { return nil, errors.New("it failed: ä\n\"quoted\"") },
		"Permanent": func(context.Context, *Run) (any, error) {
			return nil, Permanent(errors.New("for good"))
		},
		"Retry": func(context.Context, *Run) (any, error) { return nil, RetryIn(errors.New("later"), 10*time.Second) },
		"Commit": func(_ context.Context, run *Run) (any, error) {
			run.Put("a", "text")
			run.PutIf("b", "new", 0)
			run.Delete("c")
			return nil, nil
		},
		"Progress": func(_ context.Context, run *Run) (any, error) {
			run.Progress(1, 2, "half\n\"way\"")
			return nil, nil
		},
		"Wait": func(ctx context.Context, _ *Run) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"Huge":   func(context.Context, *Run) (any, error) { return json.Number("1e400"), nil },
		"Large":  func(context.Context, *Run) (any, error) { return strings.Repeat("y", 1_100_000), nil },
		"Broken": func(context.Context, *Run) (any, error) { return json.RawMessage("[\"x\xff\\ud800\", 9007199254740993]"), nil },
		"BrokenError": func(context.Context, *Run) (any, error) {
			return nil, errors.New("y\xff")
		},
		"BrokenProgress": func(_ context.Context, run *Run) (any, error) {
			run.Progress(1, 2, "z\xff")
			return nil, nil
		},
		"RetryLong": func(context.Context, *Run) (any, error) {
			return nil, RetryIn(errors.New("later"), 200*time.Hour)
		},
		"RetrySeconds": func(context.Context, *Run) (any, error) {
			return nil, RetryIn(errors.New("later"), 1500*time.Millisecond)
		},
		"Odd": func(context.Context, *Run) (any, error) { return make(chan int), nil },
		"Slow": func(context.Context, *Run) (any, error) {
			time.Sleep(500 * time.Millisecond)
			return nil, nil
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
