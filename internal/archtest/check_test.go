package archtest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "example.org/house"

// source is a Go file of a package with imports given from the module's root.
func source(pkg string, imports ...string) string {
	var b strings.Builder
	b.WriteString("// Package " + pkg + " is an example.\npackage " + pkg + "\n")
	for _, path := range imports {
		b.WriteString("import _ \"" + module + "/" + path + "\"\n")
	}
	return b.String()
}

func TestCheckReports(t *testing.T) {
	machinePath := "/wor" + "k/main/secret"
	for _, c := range []struct {
		name string
		tree map[string]string
		want []string
	}{
		{"downwards is fine", map[string]string{
			"engine/a.go": source("engine", "agent", "store", "money"),
			"agent/a.go":  source("agent", "llm/script", "workspace/shell"),
		}, nil},
		{"upwards is not", map[string]string{
			"journal/a.go": source("journal", "engine"),
		}, []string{"journal/a.go:3: imports engine, but engine is above journal"}},
		{"a test may not look up either", map[string]string{
			"task/a_test.go": source("task", "store"),
		}, []string{"task/a_test.go:3: imports store, but store is above task"}},
		{"what a build tag hides is seen", map[string]string{
			"journal/a_windows.go": "//go:build windows\n\n" + source("journal", "engine"),
		}, []string{"journal/a_windows.go:5: imports engine, but engine is above journal"}},
		{"a subpackage is part of the house too", map[string]string{
			"journal/filelog/a.go": source("filelog", "journal", "store/x"),
		}, []string{"journal/filelog/a.go:4: imports store/x, but store is above journal"}},
		{"neighbours only by agreement", map[string]string{
			"contextwindow/a.go": source("contextwindow", "llm"),
			"llm/a.go":           source("llm", "approval"),
		}, []string{"llm/a.go:3: imports approval, but llm and approval are neighbours and do not know each other"}},
		{"strangers stay strangers", map[string]string{
			"agent/a.go":      source("agent", "store"),
			"agent/a_test.go": source("agent", "store"),
		}, []string{"agent/a.go:3: imports store, but the agent names what it needs of a task in an interface of its own"}},
		{"strangers below are meant too", map[string]string{
			"llm/anthropic/a.go": source("anthropic", "task"),
			"tool/filetool/a.go": source("filetool", "journal/filelog"),
		}, []string{
			"llm/anthropic/a.go:3: imports task, but a provider knows requests and replies, not tasks or disks",
			"tool/filetool/a.go:3: imports journal/filelog, but a tool touches the user's files and knows no history",
		}},
		{"a package needs a place", map[string]string{
			"attic/a.go": source("attic"),
		}, []string{"attic: has no layer; add it to the table in internal/archtest/layer.go"}},
		{"one package calls the kernel's lock", map[string]string{
			"internal/filelock/a.go": source("filelock") + "var _ = unix.Flock(0, 0)\n",
			"store/a_test.go":        "package store\nvar _ = syscall.Flock(0, 0)\n",
			"store/a.go":             source("store") + "var _ = windows.LockFileEx(0, 0)\n",
		}, []string{"store/a.go:3: calls the kernel's file lock; internal/filelock does that for all systems"}},
		{"one package opens folders", map[string]string{
			"internal/inputfile/a.go": source("inputfile") + "var _, _ = os.OpenRoot(dir)\n",
			"store/a_test.go":         "package store\nvar _, _ = os.OpenRoot(dir)\n",
			"store/a.go":              source("store") + "var _, _ = os.OpenRoot(dir)\n",
		}, []string{"store/a.go:3: waits where a pipe took the folder's place; use inputfile.OpenDir"}},
		{"no expression is compiled at the start", map[string]string{
			"money/a.go":             source("money") + "var x = regexp.MustCompile(`a`)\n",
			"redact/a.go":            source("redact") + "var (\n\tlong = lazyregexp.New(`a`)\n\tx    = regexp.MustCompile(`a`)\n)\n",
			"docs/a.go":              source("docs") + "func f() {\n\tx := regexp.MustCompile(`a`)\n}\n",
			"internal/archtest/a.go": source("archtest") + "var x = regexp.MustCompile(`a`)\n",
		}, []string{
			"money/a.go:3: compiles a regular expression in each process that starts; use internal/lazyregexp",
			"redact/a.go:5: compiles a regular expression in each process that starts; use internal/lazyregexp",
		}},
		{"and a comment", map[string]string{
			"money/a.go":       "package money\n",
			"cmd/roost/a.go":   "// Roost is a program.\npackage main\n",
			"cmd/roost/b.go":   "package main\n",
			"esjson/a.go":      "package esjson\n",
			"esjson/doc.go":    source("esjson"),
			"task/a_test.go":   "package task_test\n",
			"redact/a_test.go": "package redact\n",
		}, []string{
			"cmd/roost: no package comment (a file that begins with // Package main ...)",
			"money: no package comment (a file that begins with // Package money ...)",
		}},
		{"and a name", map[string]string{
			"task/util/a.go":   source("util"),
			"task/things/a.go": source("manager"),
		}, []string{
			"task/things: the name has no subject; name the package after what it knows",
			"task/util: the name has no subject; name the package after what it knows",
		}},
		{"no template that calls methods by their names", map[string]string{
			"web/a.go":      source("web") + "\nimport \"html/template\"\n",
			"web/a_test.go": source("web") + "\nimport \"html/template\"\n",
			"task/a.go":     source("task") + "\nimport (\n\tt \"text/template\"\n)\n",
		}, []string{
			"task/a.go:5: imports a template package that calls methods by their names, so the linker keeps all methods; write a .templ file",
			"web/a.go:4: imports a template package that calls methods by their names, so the linker keeps all methods; write a .templ file",
		}},
		{"800 lines are enough", map[string]string{
			"task/a.go": source("task") + strings.Repeat("\n", 798),
			"task/b.go": source("task") + strings.Repeat("\n", 799),
			"task/c.go": "// Code generated by a tool. DO NOT EDIT.\n" + source("task") + strings.Repeat("\n", 799),
		}, []string{"task/b.go: 801 lines; over 800 it is two files"}},
		{"no machine's folders", map[string]string{
			"README.md":    "one\nsee " + machinePath + "\n",
			"tools/go.mod": "module tools\n// " + machinePath + "\n",
			".git/config":  machinePath,
			"work/.git":    machinePath,
		}, []string{
			"README.md:2: names \"" + machinePath[:10] + "\", a folder of the machine it was written on",
			"tools/go.mod:2: names \"" + machinePath[:10] + "\", a folder of the machine it was written on",
		}},
		{"other modules and testdata are not ours", map[string]string{
			"tools/go.mod":         "module tools\n",
			"tools/x/a.go":         source("x", "cli"),
			"task/testdata/bad.go": source("common", "cli"),
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := Check(treeOf(c.tree), module)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, texts(found)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestCheckRefusesWhatDoesNotParse(t *testing.T) {
	if _, err := Check(treeOf(map[string]string{"task/a.go": "pack"}), module); err == nil || !strings.Contains(err.Error(), "task/a.go") {
		t.Errorf("error %v does not name the file", err)
	}
}

// TestLayerTable keeps the table itself free of slips.
func TestLayerTable(t *testing.T) {
	layerOf := map[string]int{}
	for i, row := range layers {
		for _, name := range row {
			if _, twice := layerOf[name]; twice {
				t.Errorf("%s stands in two layers", name)
			}
			layerOf[name] = i
		}
	}
	for from, list := range neighbours {
		for _, to := range list {
			if layerOf[from] != layerOf[to] {
				t.Errorf("%s and %s are not neighbours", from, to)
			}
		}
	}
	for from, s := range strangers {
		for _, to := range s.from {
			name, layer, ok := owner(to)
			if !ok || layer <= layerOf[from] {
				t.Errorf("%s cannot import %s (%s) anyway: the entry says nothing", from, to, name)
			}
		}
	}
}
