package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/filetool"
	"github.com/roost-dev/roost/workspace"
)

// fileTools measures searching and listing a tree of source files, against the
// programs that people use for it: ripgrep where it is installed, else grep, and find.
// All files are in memory and each program's own start is in its time, as a model's
// command would pay for it. The tool does what the programs are not asked to: it
// follows .gitignore, and formats what it found with the lines around it.
func fileTools(ctx context.Context, o options) ([]row, error) {
	folders, each, rounds := 200, 100, 9
	if o.quick {
		folders, each, rounds = 10, 20, 2
	}
	root := filepath.Join(o.dir, "tree")
	err := sourceTree(root, folders, each)
	if err != nil {
		return nil, err
	}
	ws, err := workspace.Open(root)
	if err != nil {
		return nil, err
	}
	env := tool.Env{Workspace: ws}
	files := fmt.Sprintf("%d files", folders*each)
	var rows []row
	for _, m := range []struct {
		what, pattern string
		none          bool
	}{
		{"a rare word", "needleword", false},
		{"a word that is nowhere", "nosuchword", true},
		{"a pattern", `func [a-z]+Needle\(`, false},
		{"letter case ignored", `(?i)NEEDLEword`, false},
	} {
		var ours, theirs times
		args := grep(m.pattern)
		if args == nil {
			return rows, nil // no yardstick
		}
		for range rounds {
			took, found, err := callTool(ctx, env, filetool.SearchFiles(), map[string]any{"path": ".", "regex": m.pattern, "file_pattern": nil})
			if err != nil {
				return rows, err
			}
			if m.none != strings.HasPrefix(found, "Found 0 ") {
				return rows, fmt.Errorf("the search for %s found %.200q", m.pattern, found)
			}
			ours = append(ours, took)
			if took, err = command(ctx, root, args, m.none); err != nil {
				return rows, err
			}
			theirs = append(theirs, took)
		}
		rows = append(rows, row{
			what: "7 search: " + m.what + ", " + files, got: ms(ours.median()),
			floor: args[0] + " " + ms(theirs.median()), ratio: over(ours.median(), theirs.median()), bar: "<= 1.50x",
		})
	}
	if _, err := exec.LookPath("find"); err != nil {
		return rows, nil
	}
	var ours, theirs times
	for range rounds {
		took, _, err := callTool(ctx, env, filetool.ListFiles(), map[string]any{"path": ".", "recursive": true})
		if err != nil {
			return rows, err
		}
		ours = append(ours, took)
		if took, err = command(ctx, root, []string{"find", ".", "-type", "f"}, false); err != nil {
			return rows, err
		}
		theirs = append(theirs, took)
	}
	return append(rows, row{
		what: "7 list of " + files, got: ms(ours.median()),
		floor: "find " + ms(theirs.median()), ratio: over(ours.median(), theirs.median()), bar: "<= 1.50x",
	}), nil
}

// grep is the command that searches the working folder for a pattern, nil if there is
// no such program.
func grep(pattern string) []string {
	plain, fold := strings.CutPrefix(pattern, "(?i)")
	if _, err := exec.LookPath("rg"); err == nil {
		return []string{"rg", "--no-heading", "-n", "-C1", pattern, "."}
	}
	if _, err := exec.LookPath("grep"); err != nil {
		return nil
	}
	args := []string{"grep", "-rnIE", "-C1"}
	if fold {
		args = append(args, "-i")
	}
	return append(args, "-e", plain, ".")
}

// command runs a program in a folder; a search that finds nothing ends with 1.
func command(ctx context.Context, dir string, args []string, none bool) (time.Duration, error) {
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Dir = dir
	var out bytes.Buffer
	c.Stdout = &out
	begun := time.Now()
	err := c.Run()
	took := time.Since(begun)
	var exit *exec.ExitError
	if none && errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = nil
	}
	if err != nil || none != (out.Len() == 0) {
		return took, fmt.Errorf("%s gave %d bytes: %w", args[0], out.Len(), err)
	}
	return took, nil
}

// callTool plans and runs a tool as the agent does.
func callTool(ctx context.Context, env tool.Env, t tool.Tool, input map[string]any) (time.Duration, string, error) {
	raw, err := json.Marshal(input)
	if err != nil {
		return 0, "", err
	}
	begun := time.Now()
	p, err := t.Plan(ctx, env, raw)
	if err != nil {
		return 0, "", err
	}
	res, err := p.Run(ctx, nil)
	if err == nil && res.IsError {
		err = errors.New(res.Text)
	}
	return time.Since(begun), res.Text, err
}

// sourceTree writes folders of source files, the same ones every time: some thousand
// bytes each, lines of usual length, a few of them with what is searched for.
func sourceTree(root string, folders, each int) error {
	words := strings.Fields("func return if err nil string int for range type struct append index value count buffer reader writer context handler request response error message state config option result token line file path name size limit offset")
	r := rand.New(rand.NewPCG(1, 2))
	for d := range folders {
		dir := filepath.Join(root, fmt.Sprintf("pkg%02d", d%20), fmt.Sprintf("part%03d", d))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for f := range each {
			var b bytes.Buffer
			for range 20 + r.IntN(100) {
				b.WriteByte('\t')
				for range 1 + r.IntN(10) {
					b.WriteString(words[r.IntN(len(words))])
					b.WriteByte(' ')
				}
				b.WriteByte('\n')
			}
			if n := d*each + f; n%500 == 7 {
				fmt.Fprintf(&b, "\treturn needleword // %d\nfunc openNeedle() {\n", n)
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%03d.go", f)), b.Bytes(), 0o644); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(root, ".gitignore"), []byte("*.log\n/build/\n"), 0o644)
}
