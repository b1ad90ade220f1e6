"""Layers. A layer is what does not change; its parameters are a tree of arrays beside it, which hg.grad and hg.jit take.

    model = hg.nn.Sequential(hg.nn.Linear(64, 96), hg.nn.BatchNorm(96), hg.relu, hg.nn.Dropout(0.1), hg.nn.Linear(96, 10))
    parameters = model.init(hg.random.key(0))
    logits = model(parameters, x)                                              # inference
    logits, parameters = model.apply(parameters, x, key, training=True)        # training: dropout, new running statistics

    def loss(p):
        logits, kept = model.apply(p, x, key, training=True)
        return hg.cross_entropy(logits, digits), kept

    (value, parameters), gradients = hg.value_and_grad(loss, has_aux=True)(parameters)
    parameters, state = optimizer.update(parameters, gradients, state)         # which leaves running statistics as they are

Parameters have the names and shapes of PyTorch's layers: `hg.nn.load_state_dict(parameters, module.state_dict())`.
"""

from hologram.nn import init as init
from hologram.nn.attention import MultiHeadAttention as MultiHeadAttention
from hologram.nn.attention import TransformerBlock as TransformerBlock
from hologram.nn.convolution import Conv1d as Conv1d
from hologram.nn.convolution import Conv2d as Conv2d
from hologram.nn.convolution import Conv3d as Conv3d
from hologram.nn.convolution import ConvTranspose1d as ConvTranspose1d
from hologram.nn.convolution import ConvTranspose2d as ConvTranspose2d
from hologram.nn.convolution import ConvTranspose3d as ConvTranspose3d
from hologram.nn.dropout import AlphaDropout as AlphaDropout
from hologram.nn.dropout import ChannelDropout as ChannelDropout
from hologram.nn.dropout import Dropout as Dropout
from hologram.nn.layer import Layer as Layer
from hologram.nn.layer import Sequential as Sequential
from hologram.nn.linear import Embedding as Embedding
from hologram.nn.linear import Linear as Linear
from hologram.nn.norms import BatchNorm as BatchNorm
from hologram.nn.norms import GroupNorm as GroupNorm
from hologram.nn.norms import InstanceNorm as InstanceNorm
from hologram.nn.norms import LayerNorm as LayerNorm
from hologram.nn.norms import RMSNorm as RMSNorm
from hologram.nn.recurrent import GRU as GRU
from hologram.nn.recurrent import LSTM as LSTM
from hologram.nn.state import load_state_dict as load_state_dict
from hologram.nn.state import state_dict as state_dict

TYPE_CHECKING = False
if not TYPE_CHECKING:  # type checkers shall know that other names are not there
    _NEAR = {"functional": "hg.relu and so on: functions are hologram's own names", "Module": "hg.nn.Layer", "Parameter": "an array",
             "Identity": "lambda x: x", "Flatten": "lambda x: x.flatten(1)", "Dropout1d": "hg.nn.ChannelDropout",
             "Dropout2d": "hg.nn.ChannelDropout", "Dropout3d": "hg.nn.ChannelDropout", "MultiheadAttention": "hg.nn.MultiHeadAttention",
             "TransformerEncoderLayer": "hg.nn.TransformerBlock"}  # fmt: skip

    def __getattr__(name: str):
        """Of a name of torch.nn: what to write instead."""
        import hologram

        plain = name[:-2] if name.endswith(("1d", "2d", "3d")) else name
        functions = {own.replace("_", ""): own for own in dir(hologram)}
        function = functions.get(plain.removesuffix("Loss").lower())
        own = _NEAR.get(name, f"hg.nn.{plain}" if plain in globals() else function and f"hg.{function}")
        if own is None or name.startswith("_"):
            raise AttributeError(f"module 'hologram.nn' has no attribute {name!r}")
        raise AttributeError(f"hologram.nn has no {name!r}: write {own}")
