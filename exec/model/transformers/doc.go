// Package transformers has what Hugging Face transformers answers for tiny models: logits, hidden states and
// greedy continuations, in float32 and bf16, for each architecture and each feature that a configuration can
// ask for. Package reference and the devices are compared with it.
//
// The models are in cases.json: a config.json each and a seed for random weights, so that only transformers'
// numbers, answers.json, are kept. Command make writes the folders; oracle.py runs them. `make transformers`
// at the top of the project installs PyTorch and transformers from the Python registry in the versions of
// requirements.txt and checks that answers.json is what they say.
package transformers
