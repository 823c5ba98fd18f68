package serve

import (
	"bytes"
	"embed"
	"net/http"
	"strings"
)

//go:embed page
var pageFiles embed.FS

// pagePolicy lets the page load and call nothing but this server.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:;" +
	" connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// page answers / and the files of the page, which need no key: they hold nothing that is not published.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/page/")
	if r.URL.Path == "/" {
		name = "index.html"
	}
	data, err := pageFiles.ReadFile("page/" + name)
	if err != nil {
		s.nowhere(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache") // another version of the server has another page
	http.ServeContent(w, r, name, s.started, bytes.NewReader(data))
}
