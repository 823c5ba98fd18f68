// Package query reads router folders that send a prompt as a whole to one of two models, and scores prompts:
// the four routers of RouteLLM (arXiv 2406.18665; github.com/lm-sys/RouteLLM). A score is the router's
// estimate, 0 to 1, of how likely the large model's answer is the better one; a prompt goes to the large
// model if its score is at least a threshold. Scores are computed on the processor, in float32, before a
// prompt is submitted: some milliseconds for a model of a million parameters.
//
// # The folder
//
// A folder has two files. router.json is a JSON object with these keys, all of them, and no others:
//
//	kind               "mf", "sw", "bert" or "causal"
//	hidden_size        width d of the small model's hidden state
//	small_model, large_model            names, for people
//	small_model_hash, large_model_hash  "sha256:" and 64 hexadecimal digits, of model.safetensors
//	tokenizer_hash                      the same of the small model's tokenizer.json
//	note               free text
//	quantiles          by task, 101 numbers: quantiles 0, 0.01 ... 1 of the scores of its validation prompts
//	embedding_layers   mf, sw: layers of the small model that a prompt's embedding goes through
//	width              mf: width w that models and prompts are compared in    (published: 128)
//	battles            sw: prompts n that are stored
//	rank               causal: rank r of the changes
//	layers, width, heads, intermediate, vocab   bert: its sizes; heads are of width / heads
//
// router.safetensors has these tensors, F32, BF16 or F16, [out, in] for a linear, and no others. An embedding
// has e = d + 1 numbers.
//
//	mf, sw   embedding.mean, embedding.deviation           [d]
//	mf       P.weight                      [2, w]  of the small and of the large model
//	         text_proj.0.weight            [w, e]
//	         classifier.0.weight           [1, w]
//	sw       battles.embedding             [n, e]
//	         battles.outcome               [n]     1: the large model won, 0.5: a tie, 0: it lost
//	bert     model.embed_tokens.weight, model.layers. ..., model.norm.weight   as Qwen3's of these sizes
//	         classifier.{weight,bias}      [3, width]  [3]
//	causal   model.layers.{i}.self_attn.{q,k,v,o}_proj.lora_{A,B}, model.layers.{i}.mlp.{gate,up,down}_proj...
//	                                       [r, in]  [out, r]
//	         labels.weight                 [3, d]
//
// # Scores
//
// The embedding q of a prompt is the mean, over its tokens, of the small model's hidden states after the
// first embedding_layers layers, without a norm, less embedding.mean and divided by embedding.deviation; and
// a 1 behind them.
//
//	mf       sigmoid(w ((P[large] / |P[large]| - P[small] / |P[small]|) * W q)), * place by place
//	sw       sum w y / sum w over the stored battles y, with w = 10 * 10^(s / max s) and s the cosine of q and
//	         the battle's embedding (all w are 10 if no s is above 0): the win rate of the Bradley-Terry
//	         ratings that fit the weighted battles of two models best
//	bert     softmax of the classifier's logits (win, tie, loss), the win's; its input is the mean over
//	         tokens of the hidden states of an encoder whose tokens see all of the prompt: layers as Qwen3's,
//	         RMSNorm's epsilon 1e-6, RoPE's base 10000
//	causal   softmax of the labels' logits (win, tie, loss), the win's; their input is the last token's hidden
//	         state of the small model with every matrix M of its layers as M + lora_B lora_A
//
// In bert and causal a tie counts for the small model, as published; in sw it is half a win.
package query
