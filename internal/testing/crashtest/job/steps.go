package job

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// in is the input of a call.
type in = map[string]any

// The job's workspace as it is before the first step.
var ground = map[string]string{
	"src/shape.go":  "package shape\n\n// Area is that of a rectangle.\nfunc Area(w, h int) int {\n\treturn w * h\n}\n\n// Edge is its way around.\nfunc Edge(w, h int) int {\n\treturn w + h\n}\n",
	"src/area.py":   "class Area:\n    def __init__(self, w, h):\n        self.w = w\n        self.h = h\n\n    def size(self):\n        return self.w * self.h\n",
	"docs/guide.md": "# Guide\r\n\r\nFirst line.\r\nSecond line.\r\nThird line.\r\n",
	"docs/old.md":   "old\n",
	"log/marks.txt": "",
	"docs/name.md":  "a name\nthat goes\n",
	"data/list.txt": "one\ntwo\nthree\nfour\nfive\n",
	"data/big.txt":  strings.Repeat("A line of a file that is long enough to fill a window.\n", 400),
	"note.ipynb": `{"cells":[{"cell_type":"markdown","metadata":{},"source":["# A notebook\n"]},{"cell_type":"code","execution_count":1,"metadata":{},` +
		`"outputs":[],"source":["print('cell two')\n"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}` + "\n",
	".roo/skills/measure/SKILL.md": "---\nname: measure\ndescription: How to measure a shape\n---\nMeasure twice, write once.\n",
	".roo/commands/check.md":       "---\ndescription: How we check\nargument-hint: what\n---\nLook at the build log, then go on.\n",
}

// Prepare fills a workspace.
func Prepare(workspace string) error {
	for name, content := range ground {
		path := filepath.Join(workspace, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("prepare the job: %w", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return fmt.Errorf("prepare the job: %w", err)
		}
	}
	return nil
}

// witness is the first part of each command line.
const witness = "echo $ID >> ../effects.log; "

// command appends lines to a file, one by one, and takes its time between them. Its
// mending appends those that are missing: they are appended in order and nobody else
// appends, so that what is missing belongs at the end.
func command(file, rest string, lines ...string) Step {
	line, mend := witness+"mkdir -p log; ", witness+"mkdir -p log; for l in"
	for _, l := range lines {
		line += fmt.Sprintf("echo '%s' >> log/%s; sleep 0.02; ", l, file)
		mend += " '" + l + "'"
	}
	mend += fmt.Sprintf(`; do grep -qxF "$l" log/%s 2>/dev/null || echo "$l" >> log/%[1]s; done; `, file)
	last := lines[len(lines)-1]
	return Step{
		Calls: []Call{{"execute_command", in{"command": line + rest + "echo said " + last, "cwd": nil, "timeout": nil}, "said " + last}},
		Mend:  []Call{{"execute_command", in{"command": mend + rest + "echo made sure of " + last, "cwd": nil, "timeout": nil}, "made sure of " + last}},
	}
}

func (s Step) with(f ...Fault) Step { s.Faults = f; return s }
func (s Step) think(t string) Step  { s.Think = t; return s }
func (s Step) and(c ...Call) Step {
	s.Calls = append(s.Calls[:len(s.Calls):len(s.Calls)], c...)
	return s
}

// slow streams its text in pieces, so that there is a middle to be killed in.
func (s Step) slow() Step {
	s.Text = strings.Repeat("I say at some length what I am about to do. ", 3)
	s.Pause = 2 * time.Millisecond
	return s
}

func do(calls ...Call) Step { return Step{Calls: calls} }

func read(path, want string) Call { return Call{"read_file", in{"path": path}, want} }

func write(path, content string) Call {
	return Call{"write_to_file", in{"path": path, "content": content}, ""}
}

func swap(path, old, fresh string) Call {
	return Call{"apply_diff", in{"path": path, "diff": "<<<<<<< SEARCH\n" + old + "\n=======\n" + fresh + "\n>>>>>>> REPLACE"}, ""}
}

func todo(done, all int) Call {
	var list []string
	for i := range all {
		box := map[bool]string{true: "[x]", false: "[ ]"}[i < done]
		list = append(list, fmt.Sprintf("%s part %d", box, i+1))
	}
	return Call{"update_todo_list", in{"todos": strings.Join(list, "\n")}, ""}
}

func ask(question string, answers ...string) Step {
	var list []any
	for _, a := range answers {
		list = append(list, in{"text": a, "mode": nil})
	}
	return do(Call{"ask_followup_question", in{"question": question, "follow_up": list}, ""})
}

func done(result string) Step {
	return do(Call{"attempt_completion", in{"result": result}, ""})
}

const patch = "*** Begin Patch\n*** Update File: data/list.txt\n@@\n two\n-three\n+THREE\n four\n*** Add File: docs/new.md\n+# New\n+\n+by a patch\n" +
	"*** Delete File: docs/old.md\n*** Update File: docs/name.md\n*** Move to: docs/renamed.md\n@@\n a name\n-that goes\n+that came\n*** End Patch"

// mendPatch does what is left of the patch, whatever that is.
const mendPatch = witness + `[ ! -e docs/name.md ] || { printf 'a name\nthat came\n' > docs/name.md; mv docs/name.md docs/renamed.md; }; rm -f docs/old.md; ` +
	`sed -i 's/^three$/THREE/' data/list.txt; echo the patch is whole`

// Whole is the job.
func Whole() Job {
	return Job{
		Plans: map[string][]Step{"main": mainPlan(), "left": leftPlan(), "right": rightPlan(), "leaf": leafPlan()},
		Says: []Said{
			{"Which colour", "the blue one"},
			{"Which side", "the far side"},
			{".roo/rules/job.md", "yes"},
			{".vscode/settings.json", "leave it alone"},
		},
		Window: 160 << 10,
	}
}

func mainPlan() []Step {
	steps := []Step{
		do(todo(0, 4)).think("A long job: first a list."),
		do(Call{"list_files", in{"path": ".", "recursive": true}, "src/shape.go"}),
		do(read("src/shape.go", "func Edge"), Call{"search_files", in{"path": "src", "regex": `return .*[*]`, "file_pattern": nil}, "area.py"}),
		do(Call{"read_file", in{"files": []any{in{"path": "data/list.txt", "line_ranges": []any{[]any{2, 3}}}, in{"path": "docs/guide.md"}}}, "Second line."}),
		do(read("note.ipynb", "cell two")),
		do(Call{"read_file", in{"path": "src/area.py", "mode": "indentation", "indentation": in{"anchor_line": 7}}, "def size"}).slow(),
		do(write("notes/first.md", "# Notes\n\nthe first\n")),
		command("build.txt", "", "step 8 builds", "step 8 checks"),
		do(swap("src/shape.go", "\treturn w + h", "\treturn 2 * (w + h)")).with(RateLimited).think("The edge is wrong."),
		do(Call{"run_slash_command", in{"command": "check", "args": "the edge"}, "Look at the build log"}),
		command("long.txt", "seq 1 9000; ", "step 11 prints much"),
		do(Call{"read_command_output", in{"artifact_id": "$ARTIFACT", "search": "^8123$"}, "8123"}),
		do(Call{"read_command_output", in{"artifact_id": "$ARTIFACT", "offset": 100, "limit": 40}, "bytes 100-140"}),
		do(Call{"list_tasks", in{"query": nil}, "Follow the plan main"}),
		do(Call{"edit", in{"file_path": "notes/first.md", "old_string": "the first\n", "new_string": "the first and the second\n"}, ""}).with(Overloaded),
		do(Call{"edit_file", in{"file_path": "notes/second.md", "old_string": "", "new_string": "alpha\nbeta\nalpha\n"}, ""}),
		do(Call{"search_replace", in{"file_path": "notes/second.md", "old_string": "beta", "new_string": "gamma"}, ""}).slow().with(Cut),
		{Calls: []Call{{"apply_patch", in{"patch": patch}, "docs/renamed.md"}}, Mend: []Call{
			write("docs/new.md", "# New\n\nby a patch\n"), {"execute_command", in{"command": mendPatch, "cwd": nil, "timeout": nil}, "the patch is whole"},
		}},
		ask("Which colour shall it have?", "the red one", "the blue one"),
		do(write("notes/colour.md", "It is the blue one.\n")).think("So it is blue."),
		do(Call{"switch_mode", in{"mode_slug": "architect", "reason": "to plan"}, "Successfully switched"}),
		do(write("docs/plan.md", "# Plan\n\n1. go on\n")),
		do(Call{"write_to_file", in{"path": "src/stray.go", "content": "package stray\n"}, "rchitect"}),
		do(Call{"switch_mode", in{"mode_slug": "code", "reason": "to build"}, "Successfully switched"}),
		do(write(".roo/rules/job.md", "Write short notes.\n")),
		do(Call{"write_to_file", in{"path": ".vscode/settings.json", "content": "{}\n"}, "leave it alone"}),
		do(todo(2, 4)).with(Silent).slow(),
		command("build.txt", "setsid sleep 97 >/dev/null 2>&1 & ", "step 28 leaves one behind"),
	}
	// A site on this machine is refused: what a model may reach does not depend on who kills it.
	steps = append(steps, do(Call{"skill", in{"skill": "measure", "args": nil}, "Measure twice"},
		Call{"web_fetch", in{"url": "http://127.0.0.1:9/", "prompt": nil}, "127.0.0.1"}))
	steps = append(steps,
		do(Call{"mcp--kit--echo", in{"text": "are you there"}, "echo: are you there"}, Call{"access_mcp_resource", in{"server_name": "kit", "uri": "note://hello"}, "hello from the server"}),
		mark(),
		delegate("left", "code", "The left part is made."),
		delegate("right", "code", "The right part is made.").slow())
	for first := len(steps); len(steps) < 59; {
		steps = append(steps, work(len(steps)-first, len(steps)+1))
	}
	return append(steps, done("All is done."))
}

// delegate hands a plan to a subtask.
func delegate(plan, mode, result string) Step {
	return do(todo(1, 4), Call{"new_task", in{"mode": mode, "message": "Do your part. " + Words(plan), "todos": "[ ] all of it"}, "completed.\n\nResult:\n" + result})
}

func leftPlan() []Step {
	return []Step{
		do(write("left/part.md", "The left part.\n")).slow(),
		command("left.txt", "", "left builds", "left checks").with(Cut),
		do(swap("left/part.md", "The left part.", "The left part, checked."), todo(1, 1)),
		done("The left part is made."),
	}
}

// rightPlan asks, and delegates once more.
func rightPlan() []Step {
	return []Step{
		do(read("left/part.md", "checked"), write("right/part.md", "The right part.\n")),
		ask("Which side shall it be on?", "the near side", "the far side"),
		delegate("leaf", "architect", "The leaf is planned."),
		command("right.txt", "", "right builds").with(RateLimited),
		done("The right part is made."),
	}
}

// leafPlan works in a mode that edits Markdown only.
func leafPlan() []Step {
	return []Step{
		do(write("right/leaf.md", "# Leaf\n")),
		do(Call{"write_to_file", in{"path": "right/leaf.go", "content": "package leaf\n"}, "rchitect"}).slow(),
		do(read("right/leaf.md", "Leaf")),
		done("The leaf is planned."),
	}
}

// markTool has an effect that nobody can look up but in its log. Whether a call of it
// that was cut took effect is mended like a command.
const markTool = "mcp--kit--mark"

func mark() Step {
	return Step{
		Calls: []Call{{markTool, in{"text": "marked once"}, "marked"}},
		Mend: []Call{{"execute_command", in{
			"command": witness + `grep -qxF 'marked once' log/marks.txt 2>/dev/null || echo 'marked once' >> log/marks.txt; echo made sure of the mark`, "cwd": nil, "timeout": nil,
		}, "made sure of the mark"}},
	}
}

// work is one of the plain steps that make a job long: it reads until the window is
// full, and writes what depends on what was written before. k counts these steps.
func work(k, n int) Step {
	file := fmt.Sprintf("notes/part-%d.md", k/8)
	begun := n - k%8
	switch k % 8 {
	case 0:
		return do(write(file, fmt.Sprintf("part %d\n\nbegun in step %[1]d\n", n))).slow()
	case 1:
		return do(read("data/big.txt", "long enough"), read(file, "begun"))
	case 2:
		return do(Call{"edit", in{"file_path": file, "old_string": "begun", "new_string": fmt.Sprintf("changed in step %d, begun", n)}, ""})
	case 3:
		return command("build.txt", "", fmt.Sprintf("step %d builds", n), fmt.Sprintf("step %d checks", n))
	case 4:
		return do(read("data/big.txt", "long enough")).think("Once more the big one.")
	case 5:
		return do(swap(file, fmt.Sprintf("part %d", begun), fmt.Sprintf("part %d, of %d", begun, n)), Call{"search_files", in{"path": "notes", "regex": "begun", "file_pattern": "*.md"}, file}).with(map[bool][]Fault{true: {Broken}}[k < 8]...)
	case 6:
		return command(fmt.Sprintf("part-%d.txt", k/8), "cat "+file+"; ", fmt.Sprintf("step %d", n)).and(read(file, "changed")).slow()
	}
	if n > 50 {
		return do(todo(3, 4)).with(Quota)
	}
	return do(read("data/big.txt", "long enough"), Call{"list_files", in{"path": "log", "recursive": false}, "build.txt"})
}
