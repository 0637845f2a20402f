// Makes tablespaces, files of a given size, as ../create-tablespace does for each by a process.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
)

var name = regexp.MustCompile("^[A-Za-z0-9_-]{1,64}$")

func create(_ context.Context, run *Run) (any, error) {
	var task struct {
		TaskPara struct {
			InstanceID        string      `json:"instanceId"`
			InitSize, MaxSize json.Number // of text or number
		}
	}
	if err := json.Unmarshal(run.Task, &task); err != nil {
		return nil, Permanent(fmt.Errorf("taskPara: %w", err))
	}
	para := task.TaskPara
	if !name.MatchString(para.InstanceID) {
		return nil, Permanent(fmt.Errorf("taskPara.instanceId: expected letters, digits, \"_\" or \"-\", got %q", para.InstanceID))
	}
	init, _ := para.InitSize.Int64()
	most, _ := para.MaxSize.Int64()
	if init < 1 || most < init {
		return nil, Permanent(fmt.Errorf("taskPara: expected initSize of 1 kilobyte or more, and maxSize of at least that"))
	}
	path := fmt.Sprintf("%s/%s.db", os.Args[1], para.InstanceID)
	aside := fmt.Sprintf("%s/.%s.db.new", os.Args[1], para.InstanceID)
	header := fmt.Sprintf("tablespace %s: init %d kB, max %d kB\n", para.InstanceID, init, most)
	if there, err := os.ReadFile(path); err == nil { // made by an attempt before this one
		if !bytes.HasPrefix(there, []byte(header)) {
			return nil, Permanent(fmt.Errorf("%s is another tablespace", path))
		}
		fmt.Println(path, "is there already")
		return map[string]any{"instanceId": para.InstanceID, "created": false, "bytes": len(there)}, nil
	}
	file, err := os.Create(aside) // aside first: there is a whole tablespace or none
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err = file.WriteString(header); err == nil {
		err = file.Truncate(init * 1024)
	}
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(aside, path)
	}
	if err != nil {
		return nil, err
	}
	fmt.Printf("made %s: %d bytes\n", path, init*1024)
	return map[string]any{"instanceId": para.InstanceID, "created": true, "bytes": init * 1024}, nil
}

func main() {
	err := os.MkdirAll(os.Args[1], 0o755)
	if err == nil {
		err = Serve(map[string]Job{"CreateTableSpace": create})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
