package jsonline_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"tokenrouter/core/turnlog/jsonline"
)

func TestValues(t *testing.T) {
	c := jsonline.NewCursor([]byte(
		` [ true , false,null, "a\u00e4\n" , -12 ,18446744073709551615, 0.5e-3, 9 ] `))
	var got []any
	err := c.Array(func(i int) (err error) {
		var v any
		switch i {
		case 0, 1:
			v, err = c.Bool()
		case 2:
			v = c.Null()
		case 3:
			v, err = c.String()
		case 4:
			v, err = jsonline.Integer[int8](c, -12, 5)
		case 5:
			v, err = jsonline.Unsigned[uint64](c, math.MaxUint64)
		case 6:
			v, err = c.Float(64)
		default:
			v, err = c.Number()
		}
		got = append(got, v)
		return err
	})
	const want = "[true false true aä\n -12 18446744073709551615 0.0005 9]"
	if err != nil || c.End() != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v, want %s", got, err, want)
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	read := func(c *jsonline.Cursor) error {
		err := c.Object(func(key string) error {
			if key != "rows" {
				return jsonline.Unknown("rows")
			}
			return c.Array(func(int) error {
				return c.Object(func(key string) error {
					switch key {
					case "fresh":
						_, err := jsonline.Integer[int32](c, 1, 9)
						return err
					case "name":
						_, err := c.String()
						return err
					}
					return jsonline.Unknown("fresh", "name")
				})
			})
		})
		if err != nil {
			return err
		}
		return c.End()
	}
	for _, c := range []struct{ text, want string }{
		{`{"rows":[{"fresh":1},{"fresh":9,"name":"x"}]}`, ""},
		{`{}`, ""},
		{`[]`, `[, want an object`},
		{``, `the end of the line, want an object`},
		{`{"rows":7}`, `rows = 7, want an array`},
		{`{"rows":[{"fresh":10}]}`, `rows[0].fresh = 10, want a whole number 1 to 9`},
		{`{"rows":[{"fresh":1.5}]}`, `rows[0].fresh = 1.5, want a whole number 1 to 9`},
		{`{"rows":[{"fresh":01}]}`, `rows[0].fresh = 01, want a whole number 1 to 9`},
		{`{"rows":[{"fresh":+1}]}`, `rows[0].fresh = +1, want a whole number 1 to 9`},
		{`{"rows":[{"fresh":"1"}]}`, `rows[0].fresh = "1", want a whole number 1 to 9`},
		{`{"rows":[{},{"Fresh":1}]}`, `rows[1].Fresh = an unknown key, want one of fresh, name`},
		{`{"rows":[{"fresh":1,"fresh":1}]}`, `rows[0] = "fresh", want each key once`},
		{`{"rows":[{"fresh":1,}]}`, `rows[0] = }, want a string`},
		{`{"rows":[{"fresh":1}`, `rows[0] = the end of the line, want a comma or the end of the array`},
		{`{"rows":[{"fresh"`, `rows[0].fresh = the end of the line, want a colon`},
		{`{"rows":[{"name":"x}]}`, `rows[0].name = "x}]}, want a string that ends`},
		{`{"rows":[{"name":"\q"}]}`, `rows[0].name = "\q", want a string with escapes that JSON knows`},
		{"{\"rows\":[{\"name\":\"\xff\"}]}", "rows[0].name = \"\xff\", want a string in UTF-8"},
		{"{\"rows\":[{\"name\":\"a\tb\"}]}", "rows[0].name = \"a\tb\", want a string without control characters"},
		{`{"rows":[]} {}`, `{, want the end of the line`},
		{`{"rows":"` + strings.Repeat("y", 99) + `"}`, `rows = "` + strings.Repeat("y", 59) + `..., want an array`},
	} {
		got := ""
		if err := read(jsonline.NewCursor([]byte(c.text))); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestLines(t *testing.T) {
	l := jsonline.NewLines("file", strings.NewReader("one\ntwo\r\nthree"))
	for i, want := range []string{"one", "two", "three"} {
		got, err := l.Next()
		if string(got) != want || err != nil || l.Line() != i+1 || l.Name() != "file" {
			t.Errorf("line %d of %s: %q, %v, want %q", l.Line(), l.Name(), got, err, want)
		}
	}
	if _, err := l.Next(); err != io.EOF {
		t.Errorf("after the last line: %v", err)
	}
}

// FuzzNumber holds that a Cursor takes the numbers that encoding/json takes, and no others.
func FuzzNumber(f *testing.F) {
	for _, seed := range strings.Fields("0 -0 01 1. .5 1e5 1E+05 -1.5e-9 1e +1 0x1 NaN 1_0 null") {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := jsonline.NewCursor([]byte(text))
		got, err := c.Float(64)
		if err == nil {
			err = c.End()
		}
		var want float64
		wanted := json.Unmarshal([]byte(text), &want)
		if text = strings.TrimSpace(text); text == "null" {
			wanted = io.EOF // encoding/json leaves the value as it is
		}
		if (err == nil) != (wanted == nil) || err == nil && got != want {
			t.Errorf("%q: %v, %v, want %v, %v", text, got, err, want, wanted)
		}
		if err != nil {
			return
		}
		back, err := strconv.ParseFloat(string(jsonline.AppendFloat(nil, got, 64)), 64)
		if err != nil || math.Float64bits(back) != math.Float64bits(got) {
			t.Errorf("%v is written as %s", got, jsonline.AppendFloat(nil, got, 64))
		}
	})
}
