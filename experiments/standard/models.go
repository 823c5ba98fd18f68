package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/gguf"
	"tokenrouter/exec/model/tokenizer"
	"tokenrouter/exec/native"
)

// models are the pair in the forms that engines read.
type models struct {
	folders  []string       // small and large
	configs  []model.Config // of them
	contexts int            // tokens of a request
}

// names are what engines call the models.
var names = []string{"small", "large"}

// prepare puts the pair into work: copies of the folders that allow contexts as long as the experiment's.
// RoPE knows no longest position, so the weights are the same.
func (e *experiment) prepare(ctx context.Context, work string, promptTokens int) (*models, error) {
	m := &models{contexts: promptTokens + e.tokensMax() + 16}
	for i, keys := range []modelKeys{e.Small, e.Large} {
		folder := filepath.Join(work, names[i])
		if err := os.RemoveAll(folder); err != nil {
			return nil, err
		}
		if keys.Dir == "" {
			if err := random(ctx, folder, keys, e.Small.Dir); err != nil {
				return nil, err
			}
			keys.Dir = folder
		} else if err := os.CopyFS(folder, os.DirFS(keys.Dir)); err != nil {
			return nil, err
		}
		config, err := model.ReadConfig(folder)
		if err != nil {
			return nil, err
		}
		m.configs = append(m.configs, config)
		if config.Positions < m.contexts {
			if err := setPositions(filepath.Join(folder, "config.json"), m.contexts); err != nil {
				return nil, err
			}
		}
		m.folders = append(m.folders, folder)
	}
	return m, nil
}

// random makes a model of random weights with the tokenizer of another.
func random(ctx context.Context, folder string, keys modelKeys, tokens string) error {
	c, err := model.ParseShape(keys.Shape)
	if err != nil {
		return err
	}
	if err := model.Make(ctx, folder, c, keys.Seed, nil); err != nil {
		return err
	}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json", "generation_config.json"} {
		data, err := os.ReadFile(filepath.Join(tokens, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// setPositions changes the number of positions in a config.json.
func setPositions(path string, positions int) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var config map[string]any
	if err := json.Unmarshal(data, &config); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	config["max_position_embeddings"] = positions
	if data, err = json.MarshalIndent(config, "", "  "); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// writeGGUF writes a model folder for llama.cpp. The tokens that end an answer are ordinary ones there, with
// other names, so that an answer can be as long as is asked for: the server would stop at them, and its
// ignore_eos forbids them instead.
func writeGGUF(folder, path string) (err error) {
	f, err := model.Open(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	t, err := tokenizer.Load(filepath.Join(folder, "tokenizer.json"))
	if err != nil {
		return err
	}
	v := &gguf.Tokens{EOS: f.Config.Vocab - 1}
	if _, taken := t.Token(int32(v.EOS)); taken {
		return fmt.Errorf("%s: its last token is not padding, by which llama.cpp could be told that answers end",
			folder)
	}
	for id := range int32(f.Config.Vocab) {
		text, ok := t.Token(id)
		if !ok || t.IsSpecial(id) {
			text = fmt.Sprintf("[%d]", id)
		}
		v.Texts = append(v.Texts, text)
	}
	return gguf.Write(path, f.Config, native.Files{Folder: f}, v)
}
