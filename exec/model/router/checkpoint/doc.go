// Package checkpoint makes router folders of the checkpoints that R2R publishes ("Roads to Rome",
// arXiv 2505.21600; github.com/thu-nics/R2R, r2r/models/router.py, save_model).
//
// Such a file is what torch.save writes: a zip file, uncompressed, with a pickle and the bytes of each
// tensor. A pickle is a program, and PyTorch would run it. This package does not. Of pickle's instructions it
// knows those that make dictionaries, lists, tuples, texts and numbers; of the names that a program may look
// up, those of float tensors and of the ordered dictionary they come in, which it builds itself. Everything
// else is refused by its name. A file is taken as hostile: every count, length and offset is checked against
// the bytes that are there, nothing is read that nobody needs, and what is written is no larger than the
// file.
//
// The dictionary has model_type, init_args, common_args with threshold and input_type, model_specific_args,
// and state_dict with the tensors that package router describes.
package checkpoint
