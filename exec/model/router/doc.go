// Package router reads and makes router folders: the networks that judge each token of the small model for
// the routing algorithms R2R, CITER and Co-LLM. It also has their arithmetic in float64, which devices are
// compared with.
//
// # The folder
//
// A folder has two files. router.json is one flat JSON object:
//
//	algorithm          "r2r", "citer" or "collm"
//	hidden_size        width d of the small model's hidden state, a whole number
//	threshold          what the score is compared with unless a run says otherwise; may be absent
//	top_logits         r2r: logits K that it reads           (published: 100)
//	width              r2r: width w of its backbone          (published: 1024)
//	                   citer: width w of the inner layer     (published: 2 d)
//	blocks             r2r: blocks n of its backbone         (published: 6)
//	expanded_width     r2r: width x inside a block           (published: 4 w)
//	small_model, large_model, small_model_hash, large_model_hash, note
//	                   free text: whose hidden states the router was trained on
//
// Sizes other than hidden_size may be absent: the tensors decide. If they are given they must fit. No other
// key may be there, and none twice.
//
// router.safetensors has the tensors of a PyTorch state_dict, F32, BF16 or F16, under the names of the public
// code. Shapes are [out, in] for a linear. Nothing else may be there but what is said to be left out.
//
// R2R ("Roads to Rome", arXiv 2505.21600; github.com/thu-nics/R2R, r2r/models/router.py, class
// HiddenStatesTokenLMHeadLogitsClassifier, without normalize_input and position embedding, all hidden_dims
// equal):
//
//	logits_projection.{weight,bias}                  [d, K]    [d]
//	combined_projection.{weight,bias}                [w, 3 d]  [w]
//	backbone.input_projection.{weight,bias}          [w, w]    [w]
//	backbone.blocks.{0...n-1}.layer_norm.{weight,bias}  [w]    [w]
//	backbone.blocks.{0...n-1}.mlp.0.{weight,bias}    [x, w]    [x]
//	backbone.blocks.{0...n-1}.mlp.3.{weight,bias}    [w, x]    [w]
//	backbone.output_layer.0.{weight,bias}            [w]       [w]    (LayerNorm)
//	backbone.output_layer.1.{weight,bias}            [1, w]    [1]
//	token_embeddings.weight                          left out: the small model's own table is used
//
// CITER (arXiv 2502.01976; src/models/conf_model.py):
//
//	mlp.0.{weight,bias}                              [w, d]    [w]
//	mlp.1.{weight,bias,running_mean,running_var}     [w] each  (BatchNorm1d)
//	mlp.1.num_batches_tracked                        left out
//	mlp.4.{weight,bias}                              [d, w]    [d]
//	linear.{weight,bias}                             [1, d]    [1]
//
// Co-LLM (arXiv 2403.03870): the row of the enlarged head that belongs to the added token <|defer|>, the last
// one, as one vector; nothing else of the fine-tuned model:
//
//	defer.weight                                     [d]
//
// A script in Python writes such a folder with
//
//	safetensors.torch.save_file({name: t.contiguous() for name, t in model.state_dict().items()}, path)
//
// Package checkpoint makes one of a checkpoint that R2R publishes.
//
// # Scores
//
// h is the small model's hidden state after its last norm, e the row of its embedding table that belongs to
// the token just sampled, z the K largest raw logits, largest first: neither divided by the temperature nor a
// softmax.
//
//	R2R     x = input(combined([h, e, top(z)])), n times x += second(gelu(first(norm(x)))),
//	        sigmoid(output(norm(x))): probability that the token diverges; gelu by erf
//	CITER   sigmoid(output(relu(first(h)))): confidence that the token is right
//	Co-LLM  sigmoid(output h): probability of deferral
//
// CITER's BatchNorm, with its running statistics and epsilon 1e-5, is folded into first, and its last two
// linears, which have nothing between them, are fused into output; both in float64. LayerNorm's epsilon is
// 1e-5.
package router
