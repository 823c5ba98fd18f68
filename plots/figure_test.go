package plots

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot/vg"
)

func TestSameInputSameBytes(t *testing.T) {
	first, second := samples(t), samples(t)
	for name, f := range first {
		a, errA := f.SVG()
		again, errAgain := f.SVG()
		b, errB := second[name].SVG()
		if err := errors.Join(errA, errAgain, errB); err != nil {
			t.Fatal(err)
		}
		coarse, other := f.raster(60).Image().(*image.RGBA), second[name].raster(60).Image().(*image.RGBA)
		if !bytes.Equal(a, b) || !bytes.Equal(a, again) || !bytes.Equal(coarse.Pix, other.Pix) {
			t.Errorf("%s: two drawings of the same data differ", name)
		}
	}
	raster, err := first["sweep"].PNG()
	if err != nil || !bytes.Equal(raster, rasters(t)["sweep"]) {
		t.Errorf("two PNGs of the same data differ, error %v", err)
	}
}

// TestNoClock looks for the year and for PNG's time and text chunks.
func TestNoClock(t *testing.T) {
	year := time.Now().Format("2006-")
	for name, f := range samples(t) {
		svg, err := f.SVG()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(svg), year) {
			t.Errorf("%s.svg holds a date", name)
		}
		raster := rasters(t)[name]
		for _, chunk := range []string{"tIME", "tEXt", "iTXt", "zTXt"} {
			if bytes.Contains(raster, []byte(chunk)) {
				t.Errorf("%s.png has a chunk %s", name, chunk)
			}
		}
	}
}

func TestSizeAndResolution(t *testing.T) {
	widths := map[string]vg.Length{
		"threshold": TextWidth, "threshold-real": TextWidth, "timeline": TextWidth,
		"speed": ColumnWidth, "schedules": ColumnWidth, "pareto": ColumnWidth,
		"bars": TextWidth, "bars-log": TextWidth, "sweep-published": ColumnWidth,
		"sweep": ColumnWidth, "sweep-gaps": ColumnWidth, "sweep-empty": ColumnWidth,
	}
	for name, f := range samples(t) {
		if f.Width != widths[name] {
			t.Errorf("%s is %v wide, want %v", name, f.Width, widths[name])
		}
		raster := rasters(t)[name]
		// 3.4 in x 300 = 1020 and 7 in x 300 = 2100 pixels.
		if got, want := decode(t, raster).Bounds().Dx(), int(f.Width/vg.Inch*300+0.5); got != want {
			t.Errorf("%s.png is %d pixels wide, want %d", name, got, want)
		}
		// 300 dots per inch are 11811 per metre: 0x2E23, in both directions, unit 1.
		want := []byte("pHYs\x00\x00\x2e\x23\x00\x00\x2e\x23\x01")
		if !bytes.Contains(raster, want) {
			t.Errorf("%s.png does not say 300 dots per inch", name)
		}
	}
}

// checkSVG reports what no SVG of ours may hold: broken XML, or coordinates that are not numbers.
func checkSVG(t *testing.T, name string, svg []byte) {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if bad := regexp.MustCompile(`="[^"]*(NaN|Inf)[^"]*"`).Find(svg); bad != nil {
		t.Errorf("%s: coordinates are not numbers: %.80s", name, bad)
	}
}

func TestWrite(t *testing.T) {
	f := samples(t)["sweep"]
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := f.Write(dir, "sweep"); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"sweep.png", "sweep.svg"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", "../a", "/a"} {
		if err := f.Write(dir, name); err == nil || !strings.Contains(err.Error(), "figure name") {
			t.Errorf("Write with name %q: error %v, want one about the name", name, err)
		}
	}
	blocked := filepath.Join(dir, "sweep.png", "below")
	if err := f.Write(blocked, "x"); err == nil || !strings.Contains(err.Error(), "figure x") {
		t.Errorf("Write below a file: error %v, want one that names the figure", err)
	}
}
