// Package answer makes text of the tokens of one request while they come: characters that are split over
// tokens, and over the models that made them, are held until they are whole, and text that may be the
// beginning of a stop string is held until it is known not to be.
package answer
