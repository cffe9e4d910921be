package local_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/local"
)

// script is what the scripted model says, turn by turn.
const script = `
- text: I write it down.
  tools:
    - name: write_to_file
      input: {path: note.txt, content: "hello\n"}
- tools:
    - name: attempt_completion
      input: {result: the note is written}
`

// Run a task in this process, follow it to the end of its run, and print the run's result.
func Example() {
	dir, err := os.MkdirTemp("", "roost-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	model, workspace := filepath.Join(dir, "script.yaml"), filepath.Join(dir, "workspace")
	if err := os.WriteFile(model, []byte(script), 0o600); err != nil {
		log.Fatal(err)
	}
	if err := os.Mkdir(workspace, 0o700); err != nil {
		log.Fatal(err)
	}

	r, err := local.Open(local.Options{Root: filepath.Join(dir, "root")})
	if err != nil {
		log.Fatal(err)
	}
	r.Start(engine.Options{}, true)
	c, end, err := r.Client()
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	run, err := c.Start(ctx, api.NewTask{
		Workspace: workspace,
		Settings:  api.Settings{Provider: "script", Model: model, Approve: "all"},
		Message:   &api.Words{Text: "Write a note."},
		OneRun:    api.OneRun{Unattended: true},
	})
	if err != nil {
		log.Fatal(err)
	}
	for event, err := range c.Events(ctx, run.Task, "0") {
		if err != nil {
			log.Fatal(err)
		}
		if event.Type == "run.ended" {
			break
		}
	}
	if run, err = c.Run(ctx, run.ID); err != nil {
		log.Fatal(err)
	}
	note, err := os.ReadFile(filepath.Join(workspace, "note.txt"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(run.State, ": ", run.Reason, "\n", string(note))

	end()
	if err := r.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// completed: the note is written
	// hello
}
