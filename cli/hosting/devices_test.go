package hosting

import (
	"strings"
	"testing"

	"rsc.io/qr"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/clitest"
)

// The drawing is the code of the link, module for module, with a light edge around it.
func TestTheQRCodeIsTheLink(t *testing.T) {
	t.Parallel()
	const link = "https://192.168.1.5:7879/login?key=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	a, out, _ := clitest.New(t)
	if err := (&commands{a}).printQR(link); err != nil {
		t.Fatal(err)
	}
	code, err := qr.Encode(link, qr.L)
	if err != nil {
		t.Fatal(err)
	}
	light := map[rune][2]bool{'█': {true, true}, '▀': {true, false}, '▄': {false, true}, ' ': {false, false}}
	rows := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(rows) != (code.Size+5)/2 {
		t.Fatalf("got %d lines, want %d", len(rows), (code.Size+5)/2)
	}
	for y, row := range rows {
		cells := []rune(row)
		if len(cells) != code.Size+4 || len(cells) > 80 {
			t.Fatalf("line %d has %d columns, want %d", y, len(cells), code.Size+4)
		}
		for x, cell := range cells {
			for half := range 2 {
				if got, want := light[cell][half], !code.Black(x-2, 2*y+half-2); got != want {
					t.Errorf("module %d,%d: got light %v, want %v", x-2, 2*y+half-2, got, want)
				}
			}
		}
	}
}

func TestAListOfHostileDevicesIsHarmless(t *testing.T) {
	t.Parallel()
	const evil = "x\x1b[2J\u202e"
	a, out, errs := clitest.New(t)
	(&commands{a}).showDevices([]api.Device{{ID: evil, Name: evil, Address: evil, FirstSeen: "2026-01-01T00:00:00Z", LastSeen: "2026-01-01T00:00:00Z"}})
	if text := out.String() + errs.String(); strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("got %q, want no escapes in it", text)
	}
}
