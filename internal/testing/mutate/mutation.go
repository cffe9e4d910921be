package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Result is what the tests made of a change.
type Result int

// The results. Explained is a change that survived and whose reason stands in explained.txt.
const (
	Noticed Result = iota
	Survived
	Explained
	NotBuilt
)

// Mutation is one change of one file.
type Mutation struct {
	Package  string // its folder
	File     string // path of the file
	Function string
	Line     int
	What     string // the change in words: `a < b` becomes `a <= b`
	from, to int    // the bytes that are replaced
	text     string // what replaces them
}

// Place is where the change stands, for a person.
func (m Mutation) Place() string { return fmt.Sprintf("%s:%d (%s)", m.File, m.Line, m.Function) }

// Key names the change without its line, so that it survives edits elsewhere in the file.
func (m Mutation) Key() string { return m.Package + " " + m.Function + " " + m.What }

// swapped are the operators and what they become.
var swapped = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD,
}

// Find returns every change that can be made to the package in a folder, in the order of the code.
func Find(dir string) ([]Mutation, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("find the files of %s: %w", dir, err)
	}
	var out []Mutation
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("find changes: %w", err)
		}
		found, err := inFile(name, source)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("find changes of %s: no function is there", dir)
	}
	return out, nil
}

func inFile(name string, source []byte) ([]Mutation, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, 0)
	if err != nil {
		return nil, fmt.Errorf("find changes: %w", err)
	}
	f := finder{set: set, source: source, name: filepath.ToSlash(name)}
	for _, d := range file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			f.function = fn.Name.Name
			ast.Inspect(fn.Body, f.visit)
		}
	}
	return f.out, nil
}

type finder struct {
	set            *token.FileSet
	source         []byte
	name, function string
	out            []Mutation
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		to, ok := swapped[n.Op]
		if ok && !(n.Op == token.ADD && (isText(n.X) || isText(n.Y))) {
			at := f.set.Position(n.OpPos).Offset
			f.add(n, at, at+len(n.Op.String()), to.String())
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			at := f.set.Position(n.OpPos).Offset
			f.add(n, at, at+1, "")
		}
	case *ast.IfStmt:
		f.replace(n.Cond, "true || "+f.text(n.Cond))
		f.replace(n.Cond, "false && ("+f.text(n.Cond)+")")
	case *ast.Ident:
		if n.Name == "true" {
			f.replace(n, "false")
		} else if n.Name == "false" {
			f.replace(n, "true")
		}
	case *ast.BasicLit:
		if n.Kind == token.INT {
			f.replace(n, "("+n.Value+" + 1)")
		}
	case *ast.IncDecStmt:
		f.replace(n, "")
	case *ast.ExprStmt:
		f.replace(n, "")
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE && len(n.Lhs) == 1 {
			f.replace(n, "_ = "+f.text(n.Rhs[0]))
		}
	case *ast.BranchStmt:
		if n.Label == nil && n.Tok == token.CONTINUE {
			f.replace(n, "")
		}
	}
	return true
}

func isText(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && (lit.Kind == token.STRING || lit.Kind == token.CHAR)
}

func (f *finder) text(n ast.Node) string {
	return string(f.source[f.set.Position(n.Pos()).Offset:f.set.Position(n.End()).Offset])
}

func (f *finder) replace(n ast.Node, by string) {
	f.add(n, f.set.Position(n.Pos()).Offset, f.set.Position(n.End()).Offset, by)
}

// add notes a change of the bytes from..to, which belong to n.
func (f *finder) add(n ast.Node, from, to int, by string) {
	begin := f.set.Position(n.Pos()).Offset
	before := f.text(n)
	after := before[:from-begin] + by + before[to-begin:]
	f.out = append(f.out, Mutation{
		Package:  filepath.ToSlash(filepath.Dir(f.name)),
		File:     f.name,
		Function: f.function,
		Line:     f.set.Position(n.Pos()).Line,
		What:     fmt.Sprintf("`%s` becomes `%s`", oneLine(before), oneLine(after)),
		from:     from,
		to:       to,
		text:     by,
	})
}

func oneLine(code string) string { return strings.Join(strings.Fields(code), " ") }

// patience bounds the tests of one change.
const patience = 2 * time.Minute

// Test runs the package's tests with the change.
func (m Mutation) Test(ctx context.Context) (Result, error) {
	scratch, err := os.MkdirTemp("", "mutate-*")
	if err != nil {
		return NotBuilt, fmt.Errorf("make a folder for a change: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	overlay, err := m.overlay(scratch)
	if err != nil {
		return NotBuilt, fmt.Errorf("change %s: %w", m.Place(), err)
	}
	ctx, done := context.WithTimeout(ctx, 2*patience)
	defer done()
	args := append([]string{"test", "-vet=off", "-failfast", "-timeout", patience.String(), "-overlay", overlay}, provers(m.Package)...)
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the arguments are this program's own
	cmd.Env = append(slices.Clone(os.Environ()), "TMPDIR="+scratch)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return Survived, nil
	case bytes.Contains(out, []byte("[build failed]")):
		return NotBuilt, nil
	case errors.As(err, &exit):
		return Noticed, nil
	}
	return NotBuilt, fmt.Errorf("test the change of %s: %w", m.Place(), err)
}

// provers are the packages whose tests prove a package: its own, and those of the package that it is a part of.
func provers(pkg string) []string {
	out := []string{"./" + pkg}
	if of := path.Dir(pkg); of != "." {
		if tests, _ := filepath.Glob(filepath.Join(of, "*_test.go")); len(tests) > 0 {
			out = append(out, "./"+of)
		}
	}
	return out
}

// overlay writes the changed file and the file that has the compiler read it, and returns the latter's path.
func (m Mutation) overlay(dir string) (string, error) {
	source, err := os.ReadFile(m.File)
	if err != nil {
		return "", err
	}
	name, err := filepath.Abs(m.File)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(changed, slices.Concat(source[:m.from], []byte(m.text), source[m.to:]), 0o600); err != nil {
		return "", err
	}
	data, err := json.Marshal(map[string]map[string]string{"Replace": {name: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, data, 0o600)
}
