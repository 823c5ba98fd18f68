package plots

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Final widths of figures on paper: one column, and the whole text block of a two-column page.
const (
	ColumnWidth = 3.4 * vg.Inch
	TextWidth   = 7 * vg.Inch
)

// dotsPerInch is the resolution of every PNG.
const dotsPerInch = 300

// A Figure is a finished drawing that can be written any number of times.
type Figure struct {
	// Width and Height are the size on paper.
	Width, Height vg.Length
	// LeftOut is the number of points that have no place on the figure's axes: zero or negative on a log
	// axis, or infinite. NaN is a missing value and is not counted.
	LeftOut int

	draw func(c *canvas)
}

// PNG returns the figure as a PNG image of 300 dots per inch.
func (f *Figure) PNG() ([]byte, error) {
	img := f.raster(dotsPerInch)
	var buf bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: img}).WriteTo(&buf); err != nil {
		return nil, fmt.Errorf("plots: PNG: %w", err)
	}
	return withResolution(buf.Bytes()), nil
}

func (f *Figure) raster(resolution int) *vgimg.Canvas {
	img := vgimg.NewWith(vgimg.UseWH(f.Width, f.Height), vgimg.UseDPI(resolution))
	f.drawOn(img)
	return img
}

// SVG returns the figure as an SVG document whose text stays text.
func (f *Figure) SVG() ([]byte, error) {
	doc := vgsvg.New(f.Width, f.Height)
	f.drawOn(doc)
	var buf bytes.Buffer
	if _, err := doc.WriteTo(&buf); err != nil {
		return nil, fmt.Errorf("plots: SVG: %w", err)
	}
	// Arial and Helvetica have the widths of Liberation Sans, so the layout holds where it is missing.
	family := "font-family:Liberation Sans;"
	return []byte(strings.ReplaceAll(buf.String(), family,
		"font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")), nil
}

// Write writes dir/name.png and dir/name.svg, making dir if it is missing. The name is a file name without a
// directory or extension.
func (f *Figure) Write(dir, name string) error {
	if name == "" || name != filepath.Base(name) || name == "." || name == ".." {
		return fmt.Errorf("plots: figure name %q, want a file name without a directory", name)
	}
	png, err := f.PNG()
	if err != nil {
		return err
	}
	svg, err := f.SVG()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("plots: figure %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		return fmt.Errorf("plots: figure %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".svg"), svg, 0o644); err != nil {
		return fmt.Errorf("plots: figure %s: %w", name, err)
	}
	return nil
}

func (f *Figure) drawOn(sheet vg.CanvasSizer) {
	c := &canvas{draw.New(sheet)}
	c.fillRect(c.Rectangle, white)
	f.draw(c)
}

// withResolution inserts the pHYs chunk after the header of a PNG, so that programs place the image at its
// size on paper. The standard encoder writes none.
func withResolution(png []byte) []byte {
	const headerEnd = 8 + 4 + 4 + 13 + 4 // signature, then length, type, data and sum of IHDR
	const perMetre = dotsPerInch * 10000 / 254
	chunk := make([]byte, 0, 21)
	chunk = binary.BigEndian.AppendUint32(chunk, 9)
	chunk = append(chunk, "pHYs"...)
	chunk = binary.BigEndian.AppendUint32(chunk, perMetre)
	chunk = binary.BigEndian.AppendUint32(chunk, perMetre)
	chunk = append(chunk, 1) // the unit is the metre
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))

	out := make([]byte, 0, len(png)+len(chunk))
	out = append(out, png[:headerEnd]...)
	out = append(out, chunk...)
	return append(out, png[headerEnd:]...)
}
