// Jobs of lictor in a Go process that stays (see the manual's page "workers"). Copy this file into the
// package of your program.
//
//	Serve(map[string]Job{
//		"Invoice": func(ctx context.Context, run *Run) (any, error) { // a taskType; "*": every other
//			run.Put("invoices/last", "A-17")
//			return map[string]int{"pages": 3}, nil // the result: anything that JSON can hold
//		},
//	})
//
// A job that returns an error or panics has failed; what it prints is its output. Jobs of one process
// run at the same time, as many as tasks_per_process says.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
)

// A Job runs a task. Its context ends when the attempt should.
type Job func(ctx context.Context, run *Run) (any, error)

// Run is an attempt.
type Run struct {
	Attempt, ID, Key, Type, Queue string
	Number                        int
	FencingToken                  uint64
	Deadline                      string          // RFC 3339; empty: never
	Task                          json.RawMessage // the record
	commit                        []write
}

type write struct {
	Key    string  `json:"key"`
	Value  *string `json:"value,omitempty"`
	Delete bool    `json:"delete,omitempty"`
	Cas    *uint64 `json:"cas,omitempty"`
}

// Put adds a write to Consul KV that is made if the attempt succeeds, with its finish, or not at all.
func (run *Run) Put(key, value string) { run.commit = append(run.commit, write{Key: key, Value: &value}) }

// PutIf is Put of a key that must have this ModifyIndex; 0: it must not exist.
func (run *Run) PutIf(key, value string, cas uint64) {
	run.commit = append(run.commit, write{Key: key, Value: &value, Cas: &cas})
}

// Delete adds a deletion likewise.
func (run *Run) Delete(key string) { run.commit = append(run.commit, write{Key: key, Delete: true}) }

// Progress tells how far the attempt is.
func (run *Run) Progress(done, total float64, text string) {
	send("progress", map[string]any{"attempt": run.Attempt, "done": done, "total": total, "text": text})
}

type failure struct {
	error
	permanent bool
	retryIn   string
}

// Permanent makes an error for good: the task becomes a dead letter at once.
func Permanent(err error) error { return failure{error: err, permanent: true} }

// RetryIn makes an error after which the task is tried again, not before `after`, such as "10s".
func RetryIn(err error, after string) error { return failure{error: err, retryIn: after} }

var replies struct {
	sync.Mutex
	*os.File
}

func send(kind string, members map[string]any) error {
	line, err := json.Marshal(map[string]any{kind: members})
	if err != nil {
		return err
	}
	replies.Lock()
	defer replies.Unlock()
	_, err = replies.Write(append(line, '\n'))
	return err
}

func answer(ctx context.Context, run *Run, jobs map[string]Job) {
	result, err := call(ctx, run, jobs)
	if err == nil {
		done := map[string]any{"attempt": run.Attempt, "result": result}
		if len(run.commit) > 0 {
			done["commit"] = run.commit
		}
		if err = send("done", done); err == nil {
			return
		}
		err = fmt.Errorf("the result is no JSON: %w", err)
	}
	failed := map[string]any{"attempt": run.Attempt, "error": err.Error()}
	var how failure
	if errors.As(err, &how) {
		failed["permanent"] = how.permanent
		if how.retryIn != "" {
			failed["retryIn"] = how.retryIn
		}
	}
	_ = send("failed", failed)
}

func call(ctx context.Context, run *Run, jobs map[string]Job) (result any, err error) {
	defer func() {
		if trouble := recover(); trouble != nil {
			err = fmt.Errorf("panic: %v", trouble)
		}
	}()
	job := jobs[run.Type]
	if job == nil {
		job = jobs["*"]
	}
	if job == nil {
		return nil, Permanent(fmt.Errorf("this worker has no job for the type %s", run.Type))
	}
	return job(ctx, run)
}

// Serve runs jobs, by taskType, until lictor has no more.
func Serve(jobs map[string]Job) error {
	number, err := strconv.Atoi(os.Getenv("LICTOR_WORKER_FD"))
	if err != nil {
		return fmt.Errorf("LICTOR_WORKER_FD: %w; lictor starts this program", err)
	}
	syscall.CloseOnExec(number)
	replies.File = os.NewFile(uintptr(number), "replies")
	if err := send("ready", map[string]any{"protocol": 1}); err != nil {
		return err
	}
	var jobsRun sync.WaitGroup
	defer jobsRun.Wait()
	var cancels sync.Map
	requests := bufio.NewReader(os.Stdin)
	for {
		line, err := requests.ReadBytes('\n')
		if err != nil {
			return nil
		}
		var message struct {
			Run    *Run
			Cancel *struct{ Attempt, Reason string }
		}
		if err := json.Unmarshal(line, &message); err != nil {
			return err
		}
		if run := message.Run; run != nil {
			ctx, cancel := context.WithCancel(context.Background())
			cancels.Store(run.Attempt, cancel)
			jobsRun.Add(1)
			go func() {
				defer jobsRun.Done()
				answer(ctx, run, jobs)
				cancel()
				cancels.Delete(run.Attempt)
			}()
		} else if message.Cancel != nil {
			if cancel, known := cancels.Load(message.Cancel.Attempt); known {
				cancel.(context.CancelFunc)()
			}
		}
	}
}
