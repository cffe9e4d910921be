package outline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/workspace/outline"
)

func TestOf(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a.go", "package a\n\n// Open opens.\nfunc Open(\n\tpath string,\n) error {\n\treturn nil\n}\n\ntype T struct {\n\tA int\n}\nvar x = 1\n",
			"4--8 | func Open(\n10--12 | type T struct {\n13--13 | var x = 1"},
		{"a.py", "import os\n\nclass A(B):\n    def f(self):\n        return 1\n\n    async def g(self):\n        pass\n\nx = 2\ndef h(): pass\n",
			"3--8 | class A(B):\n4--5 |     def f(self):\n7--8 |     async def g(self):\n11--11 | def h(): pass"},
		{"a.ts", "import x from 'y'\nexport class A {\n  private b = 1\n  constructor(a: string) {\n    if (a) {\n      run()\n    }\n  }\n}\nexport const f = async (a: number) => {\n  return a\n}\ntype T = {\n  a: 1\n}\nfunction g() {}\n",
			"2--9 | export class A {\n4--8 |   constructor(a: string) {\n10--12 | export const f = async (a: number) => {\n13--15 | type T = {\n16--16 | function g() {}"},
		{"a.rs", "use x;\npub struct A {\n    b: u8,\n}\nimpl A {\n    pub async fn f(&self) -> u8 {\n        1\n    }\n}\n",
			"2--4 | pub struct A {\n5--9 | impl A {\n6--8 |     pub async fn f(&self) -> u8 {"},
		{"A.java", "package a;\npublic class A {\n    private int b;\n    public static void main(String[] args) throws E {\n        run();\n    }\n}\n",
			"2--7 | public class A {\n4--6 |     public static void main(String[] args) throws E {"},
		{"a.c", "#include <a.h>\nstatic int f(int a)\n{\n\treturn a;\n}\nstruct s {\n\tint a;\n};\nint g(void);\n",
			"2--5 | static int f(int a)\n6--8 | struct s {"},
		{"a.sh", "set -e\nrun() {\n  echo\n}\n", "2--4 | run() {"},
		{"a.rb", "class A\n  def f\n    1\n  end\nend\n", "1--5 | class A\n2--4 |   def f"},
		{"README.md", "# A\n\ntext\n\n## B\nmore\n\n# C\n", "1--6 | # A\n5--6 | ## B\n8--8 | # C"},
		{"a.sql", "CREATE TABLE a (\n  b int\n);\nselect 1;\n", "1--3 | CREATE TABLE a ("},
		{"a.go", "func A() {\r\n\tb()\r\n}\r\n", "1--3 | func A() {"},
		{"a.bin", "func A() {}", ""},
		{"a.go", "func A() {}\x00", ""},
		{"a.go", "func A() {} \xff", ""},
		{"a.py", "", ""},
	} {
		if diff := cmp.Diff(c.want, outline.Of(c.name, c.text)); diff != "" {
			t.Errorf("got %s %q:\n%s, want diff = \"\"", c.name, c.text, diff)
		}
	}
}

// Calls and conditions look nearly like declarations.
func TestOfLeavesStatementsOut(t *testing.T) {
	text := "  if (a) {\n  }\n  for (const x of y) {\n  }\n  while (b) {\n  }\n  switch (c) {\n  }\n  run(1);\n  const a = 1\n"
	got := outline.Of("a.ts", text)
	if got != "" {
		t.Errorf("statements were taken for declarations:\n%s", got)
	}
}

func TestOfCutsLongLines(t *testing.T) {
	got := outline.Of("a.go", "var s = \""+strings.Repeat("ä", 500)+"\"")
	if len(got) > 200 || !strings.HasSuffix(got, "ä…") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

// Whatever a file holds, what an outline says are lines of it, and no range ends
// before it begins or after the file.
func TestOfProperty(t *testing.T) {
	words := []string{"func a() {", "class A {", "class A:", "def f():", "}", "end", "\t", "  ", "# x", "fn a() {", "pub ", "{", ") {", "", "text", "int f(", "é"}
	rapid.Check(t, func(r *rapid.T) {
		lines := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 3).Draw(r, "words"), "")
		}), 0, 30).Draw(r, "lines")
		name := "x" + rapid.SampledFrom([]string{".go", ".py", ".ts", ".rs", ".java", ".c", ".sh", ".md", ".rb"}).Draw(r, "ext")
		for row := range strings.SplitSeq(outline.Of(name, strings.Join(lines, "\n")), "\n") {
			if row == "" {
				continue
			}
			var from, to int
			head, text, _ := strings.Cut(row, " | ")
			if _, err := fmt.Sscanf(head, "%d--%d", &from, &to); err != nil {
				r.Fatalf("row %q: %v", row, err)
			}
			if from < 1 || to < from || to > len(lines) || strings.TrimRight(lines[from-1], " \t") != text {
				r.Fatalf("row %q of %q", row, lines)
			}
		}
	})
}

func ExampleOf() {
	fmt.Println(outline.Of("shape.py", "class Shape:\n    def area(self):\n        return 0\n"))
	// Output:
	// 1--3 | class Shape:
	// 2--3 |     def area(self):
}
