"""Sentence-transformer weights to the files that `MiniLMEmbedder` reads: python tools/export_minilm.py SOURCE TARGET [--int8] [--tiny]

SOURCE holds config.json, model.safetensors and tokenizer.json; TARGET gets model.onnx and tokenizer.json, in the shape of the model's own
onnx/model.onnx: input_ids, attention_mask and token_type_ids in, last_hidden_state out. `--int8` adds model_qint8.onnx.
`--tiny` needs no SOURCE: a small model of random weights, which the tests run (tests/fixtures/tiny-minilm).

It needs torch, transformers, onnx and onnxruntime, none of which the package does: run it in an environment of its own.
"""
import argparse
import shutil
from pathlib import Path

import torch
from transformers import BertConfig, BertModel

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
WORDS = """the a of to in and is are was for not no with from by use we deploy build test queue worker upload report retry fail time minute hour second
memory database index cache api server client token key file line path branch release version limit rate day week user error log job run
schedule data table page""".split()


def export(model: BertModel, target: Path) -> Path:
    "One forward pass with names and two free axes, in 32 bits."
    target.mkdir(parents=True, exist_ok=True)
    example = tuple(torch.tensor([[1, 4, 5, 2], [1, 4, 2, 0]]) if i == 0 else torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]]) * (i == 1) for i in range(3))
    axes = {name: {0: "batch", 1: "sequence"} for name in (*INPUTS, "last_hidden_state")}
    with torch.no_grad():
        torch.onnx.export(LastHidden(model.eval()), example, str(target / "model.onnx"), input_names=list(INPUTS), output_names=["last_hidden_state"],
                          dynamic_axes=axes, opset_version=17, dynamo=False)
    return target / "model.onnx"


class LastHidden(torch.nn.Module):
    "The token vectors alone; pooling is the embedder's."
    def __init__(self, model: BertModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, token_type_ids):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).last_hidden_state


def quantise(model: Path) -> None:
    "Weights to signed bytes of seven bits, a scale a channel: a scale for the whole tensor costs four times the error, eight bits overflow without VNNI."
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(model, model.with_name("model_qint8.onnx"), weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)


def tiny(target: Path) -> BertModel:
    "Two layers of 16 on a vocabulary of words and letters; the same weights every time."
    from tokenizers import BertWordPieceTokenizer
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,:-_/#"
    vocab = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", *letters, *(f"##{c}" for c in letters), *dict.fromkeys(w for w in WORDS if len(w) > 1)]
    tokenizer = BertWordPieceTokenizer(vocab={w: i for i, w in enumerate(vocab)})
    target.mkdir(parents=True, exist_ok=True)
    tokenizer.enable_padding(length=128)
    tokenizer.enable_truncation(128)  # as in the real file, so that the tests see that neither is obeyed
    tokenizer.save(str(target / "tokenizer.json"), pretty=False)
    torch.manual_seed(0)
    config = BertConfig(vocab_size=len(vocab), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, max_position_embeddings=256,
                        attn_implementation="eager", initializer_range=0.3)
    return BertModel(config, add_pooling_layer=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path, nargs="?")
    parser.add_argument("target", type=Path)
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(2)
    if args.tiny: written = export(tiny(args.target), args.target)
    else:
        if args.source is None: parser.error("name a directory with config.json, model.safetensors and tokenizer.json")
        model = BertModel.from_pretrained(args.source, add_pooling_layer=False, attn_implementation="eager", dtype=torch.float32)  # nosec B615 # a directory
        written = export(model, args.target)
        shutil.copy(args.source / "tokenizer.json", args.target / "tokenizer.json")
    if args.int8: quantise(written)
    print({f.name: f.stat().st_size for f in sorted(args.target.iterdir())})
