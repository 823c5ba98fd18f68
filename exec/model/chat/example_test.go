package chat_test

import (
	"fmt"

	"tokenrouter/exec/model/chat"
)

// A question is put into the form that a model was trained on.
func ExampleTemplate_Render() {
	template, err := chat.Parse("chat_template.jinja", `{% for m in messages %}
<|{{ m.role }}|>{{ m.content | trim }}
{% endfor %}
{% if add_generation_prompt %}<|assistant|>{% endif %}`, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := template.Render([]chat.Message{{Role: "user", Content: " Why? "}}, chat.Options{Reply: true})
	fmt.Println(text, err)
	// Output:
	// <|user|>Why?
	// <|assistant|> <nil>
}
