// Package theme has the colours of everything that Roost writes to a terminal.
//
// A theme gives each Role (what a piece of text is, such as a link or a failure) a colour of the 256 that terminals
// know, so that it looks the same in true colour. Each colour has a contrast of 4.5:1 or more (WCAG 2.1, level AA)
// against the backgrounds that its theme is meant for, 7:1 in high-contrast. A terminal with 16 colours gets its own
// colours by their names, because their values are the user's.
//
// Limits: a theme never asks the terminal for its background, because the answer would come among the typed keys. It
// reads COLORFGBG; without that variable it takes colours that can be read on black and on white.
package theme

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/charmbracelet/colorprofile"

	"github.com/roost-dev/roost/api"
)

// Role is the meaning of a piece of text.
type Role uint8

// The roles of text.
const (
	Text   Role = iota // the terminal's own colour
	Dim                // reasoning, output, housekeeping
	Accent             // headings and keywords
	Model
	Success
	Warning
	Failure
	Code
	Link
	Added // lines of a difference
	Removed
	roleCount
)

// Attr is a set of attributes of text besides its colour; bits.
type Attr uint8

// The attributes of text.
const (
	Bold Attr = 1 << iota
	Faint
	Italic
	Underline
	Strike
)

// attrCodes are the parameters of SGR, in the order of the bits.
var attrCodes = [...]string{"1", "2", "3", "4", "9"}

// look is the appearance of a role.
type look struct {
	colour int // one of the 256; own = the terminal's own
	attr   Attr
}

// own is the terminal's own colour; 0 would be black.
const own = -1

// Theme is the colours of one terminal. The zero Theme has none: it writes text without colours.
type Theme struct {
	Name  string // dark, light, high-contrast, either, basic; "" = none
	looks *[roleCount]look
	depth colorprofile.Profile
}

// On reports whether the theme writes colours.
func (t Theme) On() bool { return t.looks != nil }

// Paint writes text in the colours of a role. The text must be safe for a terminal, and on one line.
func (t Theme) Paint(r Role, text string) string { return t.With(r, 0, text) }

// With is Paint with attributes besides those of the role.
func (t Theme) With(r Role, attr Attr, text string) string {
	if t.looks == nil || text == "" {
		return text
	}
	codes := t.codes(r, attr)
	if codes == "" {
		return text
	}
	return "\x1b[" + codes + "m" + text + "\x1b[0m"
}

func (t Theme) codes(r Role, attr Attr) string {
	l := t.looks[r]
	var out []string
	for i, code := range attrCodes {
		if (attr|l.attr)&(1<<i) != 0 {
			out = append(out, code)
		}
	}
	if l.colour != own {
		out = append(out, t.colour(l.colour))
	}
	return strings.Join(out, ";")
}

// colour returns the parameters of SGR for text in a colour.
func (t Theme) colour(n int) string {
	switch {
	case n < 8: // the own colours of basic
		return strconv.Itoa(30 + n)
	case t.depth >= colorprofile.TrueColor: // exact also where the user's palette changed the 256
		r, g, b := rgb(n)
		return fmt.Sprintf("38;2;%d;%d;%d", r, g, b)
	}
	return "38;5;" + strconv.Itoa(n)
}

// rgb returns the values of a colour from 16 to 255: a cube of six steps, then greys.
func rgb(n int) (r, g, b int) {
	if n >= 232 {
		grey := 8 + 10*(n-232)
		return grey, grey, grey
	}
	steps := [...]int{0, 95, 135, 175, 215, 255}
	n -= 16
	return steps[n/36], steps[n/6%6], steps[n%6]
}

// palette has the colours for one kind of background.
type palette struct {
	name  string
	looks [roleCount]look
}

var dark = palette{"dark", [...]look{
	Text: {own, 0}, Dim: {248, 0}, Accent: {117, Bold}, Model: {own, 0}, Success: {114, 0}, Warning: {221, 0},
	Failure: {210, 0}, Code: {180, 0}, Link: {111, Underline}, Added: {114, 0}, Removed: {210, 0},
}}

var light = palette{"light", [...]look{
	Text: {own, 0}, Dim: {241, 0}, Accent: {25, Bold}, Model: {own, 0}, Success: {22, 0}, Warning: {94, 0},
	Failure: {124, 0}, Code: {90, 0}, Link: {25, Underline}, Added: {22, 0}, Removed: {124, 0},
}}

// either can be read on black and on white. There are few such colours.
var either = palette{"either", [...]look{
	Text: {own, 0}, Dim: {243, 0}, Accent: {63, Bold}, Model: {own, 0}, Success: {29, 0}, Warning: {131, 0},
	Failure: {163, 0}, Code: {98, 0}, Link: {63, Underline}, Added: {29, 0}, Removed: {163, 0},
}}

var highDark = palette{"high-contrast", [...]look{
	Text: {own, 0}, Dim: {251, 0}, Accent: {159, Bold}, Model: {own, 0}, Success: {120, 0}, Warning: {227, Bold},
	Failure: {218, Bold}, Code: {223, 0}, Link: {159, Underline}, Added: {120, 0}, Removed: {218, 0},
}}

var highLight = palette{"high-contrast", [...]look{
	Text: {own, 0}, Dim: {238, 0}, Accent: {18, Bold}, Model: {own, 0}, Success: {16, 0}, Warning: {52, Bold},
	Failure: {88, Bold}, Code: {53, 0}, Link: {18, Underline}, Added: {18, 0}, Removed: {88, 0},
}}

// basic is the terminal's own sixteen colours by their names.
var basic = palette{"basic", [...]look{
	Text: {own, 0}, Dim: {own, Faint}, Accent: {own, Bold}, Model: {own, 0}, Success: {2, 0}, Warning: {3, 0},
	Failure: {1, 0}, Code: {6, 0}, Link: {own, Underline}, Added: {2, 0}, Removed: {1, 0},
}}

// Basic returns the theme in a terminal's own sixteen colours.
func Basic() Theme { return Theme{basic.name, &basic.looks, colorprofile.ANSI} }

// Settings are the values of the setting theme; auto is the default.
var Settings = []string{"auto", "dark", "light", "high-contrast", "none"}

// Of returns the theme of a terminal: that of the setting, in as many colours as the variables TERM and COLORTERM
// promise. With auto, or "", COLORFGBG names the background. A caller that wants no colours uses the zero Theme.
func Of(setting string, env func(string) string) Theme {
	depth := depthOf(env)
	if setting == "none" || depth <= colorprofile.ASCII {
		return Theme{}
	}
	if depth == colorprofile.ANSI {
		return Basic()
	}
	isDark, known := background(env("COLORFGBG"))
	p := &either
	switch {
	case setting == "high-contrast" && known && !isDark:
		p = &highLight
	case setting == "high-contrast":
		p = &highDark
	case setting == "dark" || setting != "light" && known && isDark:
		p = &dark
	case setting == "light" || known:
		p = &light
	}
	return Theme{p.name, &p.looks, depth}
}

// depthVariables are the variables that colorprofile reads, except for those that turn colours off.
var depthVariables = []string{"TERM", "COLORTERM", "WT_SESSION", "GOOGLE_CLOUD_SHELL", "ConEmuANSI", "ANSICON"}

// depthOf returns how many colours the terminal has. The caller has checked that there is a terminal and that it may
// get colours.
func depthOf(env func(string) string) colorprofile.Profile {
	list := api.Some(depthVariables, func(name string) (string, bool) {
		value := env(name)
		return name + "=" + value, value != ""
	})
	return colorprofile.Env(list)
}

// background reads COLORFGBG: "15;0" or "15;default;0" is white on black. Its last number is one of the 16 colours.
func background(value string) (isDark, known bool) {
	n, err := strconv.Atoi(value[strings.LastIndexByte(value, ';')+1:])
	if err != nil || n < 0 || n > 15 {
		return false, false
	}
	return n < 7 || n == 8, true
}
