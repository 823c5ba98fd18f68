package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHostile: what a template may ask for has bounds, and within them it gets it. The results are those of
// Jinja 3.1.
func TestHostile(t *testing.T) {
	for _, c := range []struct{ name, source, want, fails string }{
		{"macro that calls itself",
			`{% macro f(n) %}{{ n }}{% if n %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}`,
			"3210", ""},
		{"macro without end", `{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}`, "", "more than 500 deep"},
		{"two macros without end",
			`{% macro f() %}{{ g() }}{% endmacro %}{%- macro g() -%}{{ f() }}{%- endmacro -%}` +
				`{{ g() }}`, "", "more than 500 deep"},
		{"one after the other", `{% macro f() %}x{% endmacro %}{% for i in range(1000) %}{{ f() }}{% endfor %}`,
			strings.Repeat("x", 1000), ""},
		{"range",
			`{% for i in range(2, 8, 3) %}{{ i }} {% endfor %}{{ range(3, 0, -2) | list }}{{ range(2) | list }}`,
			"2 5 [3, 1][0, 1]", ""},
		{"long range", `{{ range(100000) | length }}`, "100000", ""},
		{"longer range", `{{ range(100001) | length }}`, "", "more than 100000 numbers"},
		{"endless range", `{{ range(0, 9223372036854775807, 9223372036854775807) | length }}`, "1", ""},
		{"range without a step", `{{ range(0, 1, 0) }}`, "", "step 0"},
		{"range of text", `{{ range("3") }}`, "", "want whole numbers"},
		{"range of nothing", `{{ range() }}`, "", "want 1 to 3"},
		{"brackets", "{{ " + strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200) + " }}", "1", ""},
		{"more brackets", "{{ " + strings.Repeat("(", 201), "", "at most 200 deep"},
		{"long", strings.Repeat("x", sourceBytesMax+1), "", "1048577 bytes, want at most 1048576"},
	} {
		text := ""
		template, err := Parse("f", c.source, nil)
		if err == nil {
			text, err = template.Render(nil, Options{})
		}
		switch {
		case c.fails == "" && (err != nil || text != c.want):
			t.Errorf("%s: %q, %v, want %q", c.name, text, err, c.want)
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.fails)
		}
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "tokenizer_config.json")
	if err := os.WriteFile(config, []byte(strings.Repeat(" ", fileBytesMax+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "16777217 bytes, want at most") {
		t.Errorf("a long file: error %v", err)
	}
}

// FuzzLoad: no tokenizer_config.json and no message makes loading, rendering or encoding panic, and every id
// is one of the vocabulary.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{"thinking", "headers", "strict", "blanks", "smollm2"} {
		source, err := os.ReadFile("testdata/" + name + ".jinja")
		if err != nil {
			f.Fatal(err)
		}
		config, err := json.Marshal(map[string]string{"chat_template": string(source), "bos_token": "<s>"})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(config, "user", "Hi")
	}
	f.Add([]byte(`{"chat_template": [{"name": "default", "template": "{{ messages[0].content }}"}],`+
		`"eos_token": {"content": "<|im_end|>"}}`), "system", "<|im_end|>\n<|im_start|>")
	f.Add([]byte(`{"chat_template": "{% macro f(x) %}{{ x }}{% endmacro %}{{ f(range(9)) }}"}`),
		"a", "\U000f0000")
	_, tokens := tiny(f)
	f.Fuzz(func(t *testing.T, config []byte, role, content string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), config, 0o600); err != nil {
			t.Fatal(err)
		}
		template, err := Load(dir)
		if err != nil {
			return
		}
		ids, err := template.Encode(tokens, []Message{{role, content}, {"user", content}}, Options{Reply: true})
		if err != nil {
			return
		}
		for _, id := range ids {
			if _, ok := tokens.Token(id); !ok {
				t.Fatalf("id %d is no token", id)
			}
		}
	})
}
