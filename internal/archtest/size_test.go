package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// maxProgram bounds the program, in bytes.
const maxProgram = 38_000_000

// The linker removes the methods that nothing calls, unless a library calls methods by their names: one such call that can
// be reached made the program 3 MB larger.
func TestSizeOfTheProgram(t *testing.T) {
	if testing.Short() || runtime.GOOS+runtime.GOARCH != "linuxamd64" {
		t.Skip("it links the program; the bound is that of linux on amd64")
	}
	program := filepath.Join(t.TempDir(), "roost")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-s -w", "-o", program, "../../cmd/roost") // of cached packages
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxProgram {
		t.Errorf("the program has %d bytes, want at most %d; go build -ldflags=-dumpdep ./cmd/roost shows what reaches a ReflectMethod",
			info.Size(), maxProgram)
	}
}
