// Package chat turns conversations into prompts with the chat template of a model folder, as
// apply_chat_template of Hugging Face transformers does.
//
// Templates are Jinja. What is between the tags is run by github.com/ardanlabs/jinja; which blanks and line
// ends remain around them is decided here, by the rules of Jinja's own lexer with trim_blocks and
// lstrip_blocks on, since the library's differ. The result was compared with transformers over 17 published
// templates and the constructs that such templates use. Known differences, none of which the published
// templates meet: an undefined name and none print as nothing, a chain such as 1 < x < 3 compares the first
// outcome with the last number, true is not equal to 1, and sort looks at capitals.
package chat
