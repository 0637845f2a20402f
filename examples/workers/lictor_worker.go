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
//
// What lictor would refuse is not sent: text that is no UTF-8 has U+FFFD there, a result that does not
// fit is left out, and numbers that a double cannot hold fail the attempt.

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"
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
	answered                      bool
}

type write struct {
	Key    string  `json:"key"`
	Value  *string `json:"value,omitempty"`
	Delete bool    `json:"delete,omitempty"`
	Cas    *uint64 `json:"cas,omitempty"`
}

// Put adds a write to Consul KV that is made if the attempt succeeds, with its finish, or not at all.
func (run *Run) Put(key, value string) {
	run.commit = append(run.commit, write{Key: key, Value: &value})
}

// PutIf is Put of a key that must have this ModifyIndex; 0: it must not exist.
func (run *Run) PutIf(key, value string, cas uint64) {
	run.commit = append(run.commit, write{Key: key, Value: &value, Cas: &cas})
}

// Delete adds a deletion likewise.
func (run *Run) Delete(key string) { run.commit = append(run.commit, write{Key: key, Delete: true}) }

// Progress tells how far the attempt is.
func (run *Run) Progress(done, total float64, text string) {
	_ = send(run, "progress", map[string]any{"done": done, "total": total, "text": short(text)})
}

type failure struct {
	error
	permanent bool
	retryIn   string
}

// Permanent makes an error for good: the task becomes a dead letter at once.
func Permanent(err error) error { return failure{error: err, permanent: true} }

// RetryIn makes an error after which the task is tried again, not before `after`.
func RetryIn(err error, after time.Duration) error {
	if after < 0 {
		after = 0
	} else if after > 24*time.Hour { // of it at most 24h count
		after = 24 * time.Hour
	}
	return failure{error: err, retryIn: strconv.FormatInt(after.Milliseconds(), 10) + "ms"}
}

var replies struct {
	sync.Mutex
	*os.File
}

const mostBytes = 1 << 20 // of a line

var errTooLong = fmt.Errorf("a reply has at most %d bytes", mostBytes)

// What lictor keeps of an error.
func short(text string) string {
	if len(text) > 1000 {
		return text[:1000]
	}
	return text
}

// send replies for `run`; once it is answered, nothing more is sent for it.
func send(run *Run, kind string, members map[string]any) error {
	if run != nil {
		members["attempt"] = run.Attempt
	}
	line, err := json.Marshal(map[string]any{kind: members})
	if err != nil {
		return err
	}
	if len(line) >= mostBytes {
		return fmt.Errorf("%w, this one has %d", errTooLong, len(line)+1)
	}
	if members["result"] != nil {
		var check any // a json.Number or a big.Int may be larger than a double
		if err := json.Unmarshal(line, &check); err != nil {
			return err
		}
		// A json.RawMessage is sent as it is.
		if !utf8.Valid(line) || bytes.Contains(bytes.ToLower(line), []byte(`\ud`)) {
			numbers := json.NewDecoder(bytes.NewReader(line))
			numbers.UseNumber()
			if err := numbers.Decode(&check); err != nil {
				return err
			}
			if line, err = json.Marshal(check); err != nil {
				return err
			}
		}
	}
	replies.Lock()
	defer replies.Unlock()
	if run != nil {
		if run.answered {
			return nil
		}
		run.answered = kind != "progress"
	}
	_, err = replies.Write(append(line, '\n'))
	return err
}

func done(run *Run, result any) error {
	members := map[string]any{"result": result}
	if len(run.commit) > 0 {
		members["commit"] = run.commit
	}
	err := send(run, "done", members)
	if errors.Is(err, errTooLong) {
		fmt.Fprintf(os.Stderr, "lictor_worker: task %s: the result is left out: %v\n", run.ID, err)
		delete(members, "result")
		if err = send(run, "done", members); errors.Is(err, errTooLong) {
			return fmt.Errorf("its KV writes cannot be made: %w", err)
		}
	}
	if err != nil {
		return fmt.Errorf("the result is no JSON: %w", err)
	}
	return nil
}

func answer(ctx context.Context, run *Run, jobs map[string]Job) {
	result, err := call(ctx, run, jobs)
	if err == nil {
		err = done(run, result)
	}
	if err == nil {
		return
	}
	failed := map[string]any{"error": short(err.Error())}
	var how failure
	if errors.As(err, &how) {
		failed["permanent"] = how.permanent
		if how.retryIn != "" {
			failed["retryIn"] = how.retryIn
		}
	}
	_ = send(run, "failed", failed)
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

var attemptOf = regexp.MustCompile(`^\s*{\s*"run"\s*:\s*{[^{}\[\]]*?"attempt"\s*:\s*"(\w+)"`)

// Serve runs jobs, by taskType, until lictor has no more. After an error end the program: nothing reads
// requests any more.
func Serve(jobs map[string]Job) error {
	number, err := strconv.Atoi(os.Getenv("LICTOR_WORKER_FD"))
	if err != nil {
		return fmt.Errorf("LICTOR_WORKER_FD: %w; lictor starts this program", err)
	}
	syscall.CloseOnExec(number)
	replies.File = os.NewFile(uintptr(number), "replies")
	if err := send(nil, "ready", map[string]any{"protocol": 1}); err != nil {
		return err
	}
	var jobsRun sync.WaitGroup
	var cancels sync.Map
	requests := bufio.NewReader(os.Stdin)
	for {
		line, err := requests.ReadBytes('\n')
		if err == io.EOF {
			jobsRun.Wait()
			return nil
		} else if err != nil {
			return err
		}
		var message struct {
			Run    *Run
			Cancel *struct{ Attempt, Reason string }
		}
		if err := json.Unmarshal(line, &message); err != nil {
			// Nested deeper than 10,000, say. lictor names the attempt before the task.
			attempt := attemptOf.FindSubmatch(line)
			if attempt == nil {
				return fmt.Errorf("cannot read a request: %w", err)
			}
			_ = send(&Run{Attempt: string(attempt[1])}, "failed", map[string]any{
				"error": short("the worker cannot parse the task: " + err.Error()), "permanent": true})
			continue
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
