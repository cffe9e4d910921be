package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A walk is a numbered list on a page: the functions that one act goes through, in order.
//
//  1. `store.Task.Commit` gives the events to the log.
//  2. `journal/filelog.owner.Append` queues the line; hands over `queue`.
//
// A name is the folder of a package and a function, or a type and its method. Each function calls the next one,
// unless its line ends with another way in which the work passes on:
//
//   - hands over `x`: both functions use the variable or field x, or the next one is stored in a field x.
//   - to its caller: the next function calls this one.
//   - over HTTP: the function sends a request, and the next one answers requests.
//
// A call through an interface or a variable counts by the name of the method.
var (
	stepLine = regexp.MustCompile("^([0-9]+)\\. `([^`.]+\\.[^`]+)`(.*)$")
	handover = regexp.MustCompile("hands over `([^`]+)`\\.$")
)

// walkStep is a line of a walk.
type walkStep struct {
	line     int
	name     string
	dir      string // folder of the package
	receiver string // type of a method, "" for a function
	function string
	rest     string // the rest of the line
}

// CheckWalks reports the faults in the walks of a page, and the number of steps in each, by its heading.
func CheckWalks(tree fs.FS, page string) (found []Violation, lengths map[string]int, err error) {
	text, err := fs.ReadFile(tree, page)
	if err != nil {
		return nil, nil, fmt.Errorf("check the walks: %w", err)
	}
	w := walker{tree: tree, packages: map[string][]*ast.File{}}
	lengths = map[string]int{}
	heading := ""
	var walk []walkStep
	for i, line := range append(strings.Split(string(text), "\n"), "") {
		if title, ok := strings.CutPrefix(line, "#"); ok {
			heading = strings.TrimLeft(title, "# ")
		}
		if m := stepLine.FindStringSubmatch(line); m != nil {
			s := stepOf(m[2])
			s.line, s.rest = i+1, m[3]
			walk = append(walk, s)
			continue
		}
		if len(walk) == 0 {
			continue
		}
		reasons, err := w.check(walk)
		if err != nil {
			return nil, nil, fmt.Errorf("check the walks: %w", err)
		}
		for _, r := range reasons {
			r.Path = page
			found = append(found, r)
		}
		lengths[heading] = len(walk)
		walk = nil
	}
	return found, lengths, nil
}

// stepOf parses a name: the package is the part before the first dot that follows the last slash.
func stepOf(name string) walkStep {
	folder, last := path.Split(name)
	parts := strings.Split(last, ".")
	s := walkStep{name: name, dir: folder + parts[0], function: parts[len(parts)-1]}
	if len(parts) == 3 {
		s.receiver = parts[1]
	}
	return s
}

// walker reads each package once.
type walker struct {
	tree     fs.FS
	packages map[string][]*ast.File
}

func (w *walker) check(walk []walkStep) (found []Violation, err error) {
	add := func(s walkStep, reason string, args ...any) {
		found = append(found, Violation{Line: s.line, Reason: fmt.Sprintf(reason, args...)})
	}
	bodies := make([][]*ast.FuncDecl, len(walk))
	for i, s := range walk {
		if bodies[i], err = w.find(s); err != nil {
			return nil, err
		}
		if len(bodies[i]) == 0 {
			add(s, "names %s, which is not there", s.name)
		}
	}
	for i, s := range walk[:len(walk)-1] {
		next := walk[i+1]
		from, to := bodies[i], bodies[i+1]
		if len(from) == 0 || len(to) == 0 {
			continue
		}
		field := handover.FindStringSubmatch(s.rest)
		switch {
		case field != nil:
			both := mentions(from, field[1]) && (mentions(to, field[1]) || w.stores(field[1], s, next))
			if !both {
				add(s, "%s hands over %s, which it and %s do not both use", s.name, field[1], next.name)
			}
		case strings.HasSuffix(s.rest, "to its caller."):
			if !calls(to, next, s) {
				add(s, "%s does not call %s", next.name, s.name)
			}
		case strings.HasSuffix(s.rest, "over HTTP."):
			if !mentions(from, "http") || !slices.ContainsFunc(to, answersHTTP) {
				add(s, "%s sends no request, or %s answers none", s.name, next.name)
			}
		case !calls(from, s, next):
			add(s, "%s does not call %s", s.name, next.name)
		}
	}
	return found, nil
}

// find returns the declarations of a step: none, one, or one for each system.
func (w *walker) find(s walkStep) (out []*ast.FuncDecl, err error) {
	files, err := w.files(s.dir)
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == s.function && receiverOf(fn) == s.receiver && fn.Body != nil {
				out = append(out, fn)
			}
		}
	}
	return out, err
}

// files returns the files of a package without its tests.
func (w *walker) files(dir string) ([]*ast.File, error) {
	if files, ok := w.packages[dir]; ok {
		return files, nil
	}
	names, err := fs.Glob(w.tree, dir+"/*.go")
	if err != nil {
		return nil, err
	}
	files := []*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := fs.ReadFile(w.tree, name)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	w.packages[dir] = files
	return files, nil
}

// stores reports whether a package of the two steps puts the function of the next one into a field.
func (w *walker) stores(field string, s, next walkStep) (found bool) {
	for _, f := range slices.Concat(w.packages[s.dir], w.packages[next.dir]) {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				found = found || isName(n.Key, field) && names(n.Value, next.function)
			case *ast.AssignStmt:
				for i, left := range n.Lhs {
					found = found || isName(left, field) && names(n.Rhs[min(i, len(n.Rhs)-1)], next.function)
				}
			}
			return !found
		})
	}
	return found
}

// receiverOf returns the type of a method, "" for a function.
func receiverOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return ""
	}
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return "?"
		}
	}
}

// calls reports whether a function calls the function of another step.
func calls(bodies []*ast.FuncDecl, s, next walkStep) (found bool) {
	for _, fn := range bodies {
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				found = found || isCallOf(call.Fun, s, next)
			}
			return !found
		})
	}
	return found
}

func isCallOf(fun ast.Expr, s, next walkStep) bool {
	switch x := fun.(type) {
	case *ast.IndexExpr:
		return isCallOf(x.X, s, next)
	case *ast.IndexListExpr:
		return isCallOf(x.X, s, next)
	case *ast.Ident:
		return next.receiver == "" && next.dir == s.dir && x.Name == next.function
	case *ast.SelectorExpr:
		if x.Sel.Name != next.function {
			return false
		}
		return next.receiver != "" || next.dir != s.dir && isName(x.X, path.Base(next.dir))
	}
	return false
}

// answersHTTP reports whether a function takes an http.ResponseWriter.
func answersHTTP(fn *ast.FuncDecl) bool { return names(fn.Type, "ResponseWriter") }

// mentions reports whether a function uses a name.
func mentions(bodies []*ast.FuncDecl, name string) bool {
	return slices.ContainsFunc(bodies, func(fn *ast.FuncDecl) bool { return names(fn.Body, name) })
}

func names(n ast.Node, name string) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name
		return !found
	})
	return found
}

// isName reports whether an expression is a name, or a field of that name.
func isName(x ast.Expr, name string) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == name
	case *ast.SelectorExpr:
		return x.Sel.Name == name
	}
	return false
}
