package tokenizer

import (
	"slices"
)

// sequenceDepthMax bounds sequences inside sequences.
const sequenceDepthMax = 8

// deeper refuses a sequence that is too deep.
func (v value) deeper(depth int) bool {
	if depth >= sequenceDepthMax {
		v.refuse(" is inside %d others, want at most %d", depth, sequenceDepthMax)
	}
	return depth < sequenceDepthMax
}

// readPattern reads {"Regex": ...} or {"String": ...}.
func readPattern(v value) *regex {
	o := v.object("Regex", "String")
	compile, key := compileRegex, "Regex"
	if _, ok := o.fields["String"]; ok {
		compile, key = literalRegex, "String"
	}
	if len(o.fields) != 1 {
		v.refuse(" = %s, want either Regex or String", v.given())
	}
	text := o.at(key).text()
	if *v.problem != nil {
		return nil
	}
	pattern, err := compile(text)
	if err != nil {
		o.at(key).refuse(": %v", err)
	}
	return pattern
}

// readNormalizer reads a normalizer. moves tells whether the first character may come from elsewhere than the
// beginning of the text.
func readNormalizer(v value, depth int) (steps []normalizer, moves bool) {
	switch kind := v.kind(); kind {
	case "NFC":
		v.object("type")
		return []normalizer{composed}, false
	case "Prepend":
		return []normalizer{prepend(v.object("type", "prepend").at("prepend").text())}, true
	case "Replace":
		o := v.object("type", "pattern", "content")
		return []normalizer{replace(readPattern(o.at("pattern")), o.at("content").text())}, true
	case "Sequence":
		o := v.object("type", "normalizers")
		if !v.deeper(depth) {
			return nil, false
		}
		for _, item := range o.at("normalizers").list() {
			more, itemMoves := readNormalizer(item, depth+1)
			steps, moves = append(steps, more...), moves || itemMoves
		}
		return steps, moves
	default:
		v.object().at("type").refuse(" = %q, want NFC, Prepend, Replace or Sequence", kind)
		return nil, false
	}
}

// readSplitters reads the pre-tokenizer.
func (t *Tokenizer) readSplitters(v value, moves bool) {
	for i, item := range flatten(v, "pretokenizers", 0) {
		if t.model.byteLevel {
			item.refuse(" comes after ByteLevel, want ByteLevel last")
		}
		switch kind := item.kind(); kind {
		case "ByteLevel":
			o := item.object("type", "add_prefix_space", "trim_offsets", "use_regex")
			var pattern *regex
			if o.at("use_regex").flag(true) {
				pattern = readGPT2()
			}
			prefixSpace := read[bool](o.at("add_prefix_space"), "true or false")
			t.splitters = append(t.splitters, byteLevel(prefixSpace, pattern))
			t.model.useBytes()
		case "Digits":
			o := item.object("type", "individual_digits")
			b := contiguous
			if read[bool](o.at("individual_digits"), "true or false") {
				b = isolated
			}
			t.splitters = append(t.splitters, splitOn(findNumeric, b, false))
		case "Metaspace":
			mark, s := readMetaspace(item)
			if s == schemeFirst && (i > 0 || moves) {
				item.refuse(".prepend_scheme = \"first\" after Prepend, Replace or another pre-tokenizer, " +
					"want \"always\" or \"never\"")
			}
			split := item.object().at("split").flag(true)
			t.splitters = append(t.splitters, metaspace(mark, s, split))
		case "Split":
			t.splitters = append(t.splitters, readSplit(item))
		default:
			item.object().at("type").refuse(" = %q, want ByteLevel, Digits, Metaspace, Sequence or Split", kind)
		}
		if *v.problem != nil {
			return
		}
	}
}

func readGPT2() *regex {
	pattern, err := compileRegex(gpt2Pattern)
	if err != nil {
		panic(err)
	}
	return pattern
}

func readSplit(v value) splitter {
	o := v.object("type", "pattern", "behavior", "invert")
	pattern := readPattern(o.at("pattern"))
	name := o.at("behavior").text()
	b, ok := behaviors[name]
	if !ok {
		o.at("behavior").refuse(" = %q, want Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous",
			name)
	}
	invert := read[bool](o.at("invert"), "true or false")
	if *v.problem != nil {
		return nil
	}
	return splitOn(pattern.find, b, invert)
}

// readMetaspace reads what the pre-tokenizer and the decoder share.
func readMetaspace(v value) (mark string, s scheme) {
	o := v.object("type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep")
	mark = string(o.at("replacement").character())
	s = schemeAlways
	given := o.at("prepend_scheme")
	if !given.isNull() {
		switch given.text() {
		case "always":
		case "first":
			s = schemeFirst
		case "never":
			s = schemeNever
		default:
			given.refuse(" = %s, want always, first or never", given.given())
		}
	}
	if !o.at("add_prefix_space").flag(true) {
		if !given.isNull() && s != schemeNever {
			o.at("add_prefix_space").refuse(" = false with prepend_scheme %s, want \"never\"", given.given())
		}
		s = schemeNever
	}
	return mark, s
}

// flatten returns v, or the members of a Sequence, whose key is key.
func flatten(v value, key string, depth int) []value {
	if v.kind() != "Sequence" {
		return []value{v}
	}
	if !v.deeper(depth) {
		return nil
	}
	var items []value
	for _, item := range v.object("type", key).at(key).list() {
		items = append(items, flatten(item, key, depth+1)...)
	}
	return items
}

// readTemplate reads the post-processor: the pieces around one text, nil where there are none. ByteLevel
// changes offsets only.
func readTemplate(v value, depth int) (pieces []templatePiece, found bool) {
	switch kind := v.kind(); kind {
	case "ByteLevel":
		v.object("type", "add_prefix_space", "trim_offsets", "use_regex")
		return nil, false
	case "Sequence":
		o := v.object("type", "processors")
		if !v.deeper(depth) {
			return nil, false
		}
		for _, item := range o.at("processors").list() {
			more, itemFound := readTemplate(item, depth+1)
			if itemFound && found {
				item.refuse(" is a second TemplateProcessing, want one")
			}
			if itemFound {
				pieces, found = more, true
			}
		}
		return pieces, found
	case "TemplateProcessing":
		return readPieces(v.object("type", "single", "pair", "special_tokens")), true
	default:
		v.object().at("type").refuse(" = %q, want ByteLevel, Sequence or TemplateProcessing", kind)
		return nil, false
	}
}

func readPieces(o object) []templatePiece {
	tokens := o.at("special_tokens").object()
	pieces := []templatePiece{}
	for _, item := range o.at("single").list() {
		piece := item.object("Sequence", "SpecialToken")
		if len(piece.fields) != 1 {
			item.refuse(" = %s, want either Sequence or SpecialToken", item.given())
		}
		if _, ok := piece.fields["Sequence"]; ok {
			id := piece.at("Sequence").object("id", "type_id").at("id")
			if id.text() != "A" {
				id.refuse(" = %s, want \"A\"", id.given())
			}
			pieces = append(pieces, templatePiece{text: true})
			continue
		}
		id := piece.at("SpecialToken").object("id", "type_id").at("id").text()
		if _, ok := tokens.fields[id]; !ok {
			item.refuse(" names %q, want one of special_tokens", id)
			return nil
		}
		var ids []int32
		for _, given := range tokens.at(id).object("id", "ids", "tokens").at("ids").list() {
			ids = append(ids, int32(given.number(idEnd-1)))
		}
		pieces = append(pieces, templatePiece{ids: ids})
	}
	return pieces
}

// readDecoder reads the decoder. Once the tokens are one text, after Fuse or ByteLevel, only Strip may
// follow.
func readDecoder(v value) []stageMaker {
	if v.isNull() {
		return []stageMaker{changer(joinSpaces)}
	}
	var makers []stageMaker
	fused := false
	for _, item := range flatten(v, "decoders", 0) {
		kind := item.kind()
		if fused && !slices.Contains([]string{"Strip", "Fuse"}, kind) {
			item.refuse(".type = %q after Fuse or ByteLevel, want Strip or Fuse", kind)
			return nil
		}
		switch kind {
		case "ByteLevel":
			item.object("type", "add_prefix_space", "trim_offsets", "use_regex")
			makers, fused = append(makers, func(bool) stage { return &levelStage{} }), true
		case "ByteFallback":
			item.object("type")
			makers = append(makers, func(eager bool) stage { return &fallbackStage{eager: eager} })
		case "Fuse":
			item.object("type")
			fused = true
		case "Metaspace":
			mark, s := readMetaspace(item)
			makers = append(makers, changer(metaspaceDecoder(mark, s)))
		case "Replace":
			o := item.object("type", "pattern", "content")
			change := replace(readPattern(o.at("pattern")), o.at("content").text())
			makers = append(makers, changer(func(token string, _ int) string { return change(token) }))
		case "Strip":
			o := item.object("type", "content", "start", "stop")
			content, start, stop := o.at("content").character(), o.at("start").number(1000), o.at("stop").number(1000)
			if fused {
				makers = append(makers, func(bool) stage {
					return &stripStage{content: content, start: start, stop: stop}
				})
			} else {
				makers = append(makers, changer(stripToken(content, start, stop)))
			}
		default:
			item.object().at("type").refuse(
				" = %q, want ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Sequence or Strip", kind)
		}
	}
	if makers == nil {
		makers = []stageMaker{changer(func(token string, _ int) string { return token })}
	}
	return makers
}

func changer(change func(token string, index int) string) stageMaker {
	return func(bool) stage { return &perToken{change: change} }
}
