package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
)

// The shapes are those of web/static/roost.svg, in its 32 units. Full: the ground fills the square, for systems that cut
// an icon to a shape of their own; the bird lies within the circle that all of them keep.
var icons = []struct {
	file string
	size int
	full bool
}{
	{"icon-192.png", 192, false},
	{"icon-512.png", 512, false},
	{"icon-maskable-512.png", 512, true},
	{"icon-apple-180.png", 180, true},
}

type point struct{ x, y float64 }

const (
	units  = 32
	round  = 8 // the radius of the ground's corners
	finely = 4 // samples of a pixel, each way
)

// perch are the lines of the perch, with their ends; a line is two units wide.
var perch = [][2]point{{{7, 22}, {25, 22}}, {{9, 22}, {9, 25}}, {{23, 22}, {23, 25}}}

// bird is the outline of the bird, as cubic curves.
var bird = outline(
	[4]point{{11, 20}, {10, 14}, {13, 9}, {18, 9}},
	[4]point{{18, 9}, {20, 9}, {21, 10}, {21.5, 11.5}},
	[4]point{{21.5, 11.5}, {21.5, 11.5}, {24, 13}, {24, 13}},
	[4]point{{24, 13}, {24, 13}, {21.5, 14}, {21.5, 14}},
	[4]point{{21.5, 14}, {21.5, 18}, {18.5, 20}, {15, 20}},
)

var eye = point{18.8, 12}

// outline is a polygon along curves.
func outline(curves ...[4]point) (out []point) {
	const steps = 24
	for _, c := range curves {
		for i := range steps {
			t := float64(i) / steps
			a, b, d, e := (1-t)*(1-t)*(1-t), 3*t*(1-t)*(1-t), 3*t*t*(1-t), t*t*t
			out = append(out, point{a*c[0].x + b*c[1].x + d*c[2].x + e*c[3].x, a*c[0].y + b*c[1].y + d*c[2].y + e*c[3].y})
		}
	}
	return out
}

func inside(p point, polygon []point) (in bool) {
	for i, a := range polygon {
		b := polygon[(i+1)%len(polygon)]
		if (a.y > p.y) != (b.y > p.y) && p.x < (b.x-a.x)*(p.y-a.y)/(b.y-a.y)+a.x {
			in = !in
		}
	}
	return in
}

// near is the distance of a point from a line.
func near(p point, line [2]point) float64 {
	a, b := line[0], line[1]
	dx, dy := b.x-a.x, b.y-a.y
	t := max(0, min(1, ((p.x-a.x)*dx+(p.y-a.y)*dy)/(dx*dx+dy*dy)))
	return math.Hypot(p.x-a.x-t*dx, p.y-a.y-t*dy)
}

var (
	ground = color.NRGBA{0x3b, 0x5b, 0x4f, 0xff}
	light  = color.NRGBA{0xf3, 0xef, 0xe4, 0xff}
)

// at is the colour of a point; false outside of the icon.
func at(p point, full bool) (color.NRGBA, bool) {
	x, y := max(round-p.x, p.x-(units-round), 0), max(round-p.y, p.y-(units-round), 0)
	if !full && math.Hypot(x, y) > round {
		return color.NRGBA{}, false
	}
	if math.Hypot(p.x-eye.x, p.y-eye.y) <= 1 {
		return ground, true
	}
	if inside(p, bird) {
		return light, true
	}
	for _, line := range perch {
		if near(p, line) <= 1 {
			return light, true
		}
	}
	return ground, true
}

func draw(size int, full bool) image.Image {
	out := image.NewNRGBA(image.Rect(0, 0, size, size))
	for y := range size {
		for x := range size {
			var r, g, b, n int
			for i := range finely * finely {
				scale := float64(units) / float64(size*finely)
				c, ok := at(point{(float64(x*finely+i%finely) + .5) * scale, (float64(y*finely+i/finely) + .5) * scale}, full)
				if ok {
					r, g, b, n = r+int(c.R), g+int(c.G), b+int(c.B), n+1
				}
			}
			if n > 0 {
				out.SetNRGBA(x, y, color.NRGBA{uint8(r / n), uint8(g / n), uint8(b / n), uint8(n * 255 / (finely * finely))}) //nolint:gosec // means of bytes
			}
		}
	}
	return out
}

func drawIcons(dir string) error {
	for _, icon := range icons {
		var b bytes.Buffer
		if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, draw(icon.size, icon.full)); err != nil {
			return fmt.Errorf("draw %s: %w", icon.file, err)
		}
		if err := os.WriteFile(filepath.Join(dir, icon.file), b.Bytes(), 0o644); err != nil { //nolint:gosec // a file of the checkout, for all to read
			return fmt.Errorf("write the icon: %w", err)
		}
		fmt.Printf("web/static/%s: %d bytes\n", icon.file, b.Len())
	}
	return nil
}
