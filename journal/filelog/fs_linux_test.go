package filelog

import (
	"errors"
	"strings"
	"testing"

	"github.com/roost-dev/roost/journal"
)

// Locks are trusted where they are known to hold, and nowhere else.
func TestKnownFileSystems(t *testing.T) {
	for magic, want := range map[uint32]string{
		0xef53: "", 0x58465342: "", 0x9123683e: "", 0x01021994: "", 0x794c7630: "",
		0x6969: "NFS", 0x65735546: "FUSE", 0x0bd00bd0: "Lustre", 0x19830326: "BeeGFS",
		0x12345678: "a file system of type 0x12345678",
	} {
		if kind, ok := judgeKind(magic); kind != want || ok != (want == "") {
			t.Errorf("0x%x: %q %v, want %q", magic, kind, ok, want)
		}
	}
	if err := Trusted(t.TempDir() + "/not/there/yet"); err != nil {
		t.Error(err)
	}
	err := Trusted("/proc/self/roost")
	if !errors.Is(err, journal.ErrUntrustedLocks) || !strings.Contains(err.Error(), "on proc, which is not known to keep locks") {
		t.Error(err)
	}
}
