"""Stubs of the extension: what programs and setups see."""

from typing import Any, Callable, Iterable, Optional, Sequence, Union

import numpy as np

Like = Union["Value", "Param", float, int, Sequence[Any], np.ndarray]

version: str
replays: bool

class Error(ValueError):
    """A mistake that the library found: in a model, a program, an option, a file or the data."""

class Broken(ArithmeticError):
    """A numerical failure: a NaN, or every particle impossible."""

class Stopped(RuntimeError):
    """Training was stopped on request."""

class Abandoned(BaseException):
    """Raised in a program whose pass has failed elsewhere, so that it ends. Let it pass."""

class Value:
    """A vector of numbers for each particle of a path. It belongs to the execution of the program that made it.

    Operators work component by component. int(v), bool(v) and v == 3 give the number itself, for Python's own control flow:
    the particles part where they differ.
    """
    def __add__(self, other: Like) -> Value: ...
    def __radd__(self, other: Like) -> Value: ...
    def __sub__(self, other: Like) -> Value: ...
    def __rsub__(self, other: Like) -> Value: ...
    def __mul__(self, other: Like) -> Value: ...
    def __rmul__(self, other: Like) -> Value: ...
    def __truediv__(self, other: Like) -> Value: ...
    def __rtruediv__(self, other: Like) -> Value: ...
    def __pow__(self, other: Like) -> Value: ...
    def __rpow__(self, other: Like) -> Value: ...
    def __matmul__(self, other: Like) -> Value: ...
    def __rmatmul__(self, other: Like) -> Value: ...
    def __gt__(self, other: Like) -> Value: ...
    def __lt__(self, other: Like) -> Value: ...
    def __ge__(self, other: Like) -> Value: ...
    def __le__(self, other: Like) -> Value: ...
    def __eq__(self, other: object) -> bool: ...
    def __ne__(self, other: object) -> bool: ...
    def __neg__(self) -> Value: ...
    def __pos__(self) -> Value: ...
    def __abs__(self) -> Value: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __float__(self) -> float: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: Any) -> Value: ...

class Param:
    """A matrix of numbers to learn. In a program it stands for its values, as one vector; of a matrix of several rows, w[i] is
    a row and w[i, j] a number."""
    def __add__(self, other: Like) -> Value: ...
    def __radd__(self, other: Like) -> Value: ...
    def __sub__(self, other: Like) -> Value: ...
    def __rsub__(self, other: Like) -> Value: ...
    def __mul__(self, other: Like) -> Value: ...
    def __rmul__(self, other: Like) -> Value: ...
    def __truediv__(self, other: Like) -> Value: ...
    def __rtruediv__(self, other: Like) -> Value: ...
    def __pow__(self, other: Like) -> Value: ...
    def __rpow__(self, other: Like) -> Value: ...
    def __matmul__(self, other: Like) -> Value: ...
    def __rmatmul__(self, other: Like) -> Value: ...
    def __gt__(self, other: Like) -> Value: ...
    def __lt__(self, other: Like) -> Value: ...
    def __ge__(self, other: Like) -> Value: ...
    def __le__(self, other: Like) -> Value: ...
    def __eq__(self, other: object) -> bool: ...
    def __ne__(self, other: object) -> bool: ...
    def __neg__(self) -> Value: ...
    def __pos__(self) -> Value: ...
    def __abs__(self) -> Value: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __float__(self) -> float: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: Any) -> Value: ...
    @property
    def values(self) -> np.ndarray:
        """The numbers, rows x cols: a copy. Assign an array during setup to start from it, or in em to replace it."""
    @values.setter
    def values(self, to: Any) -> None: ...
    @property
    def name(self) -> str:
        """The full name, as in the checkpoint."""
    @property
    def shape(self) -> tuple[int, int]:
        """(rows, cols)"""

class Layer:
    """A function with parameters: layer(x), or layer([a, b]) for an input in parts, whose products are computed once for each
    part that several particles share. Cells (rnn, gru) take a state: cell(x, h); an lstm takes and gives two: h, c = cell(x,
    (h, c)). Over items, a list: set_encoder(items), attention(query, items), and last, states = bidirectional(items), where
    states has the two states after each item."""
    def __call__(self, x: Any, h: Any = ...) -> Any: ...
    @property
    def n_out(self) -> int:
        """How many numbers come out, to declare the layer after it."""
    @property
    def picture(self) -> tuple[int, int, int]:
        """What comes out as a picture: (channels, rows, cols); (1, 1, n_out) for a layer that is no convolution."""
    @property
    def bias(self) -> Optional[Param]:
        """The bias of a linear layer, or of the last one of an mlp; None for a layer of another kind."""

class Numbers:
    """The numbers of a value, as a program looks at them (Path.look). Good until the program ends."""
    def __len__(self) -> int: ...
    def __getitem__(self, index: Any) -> Any: ...
    def numpy(self) -> np.ndarray:
        """A copy as an array."""

class Path:
    """One execution of a program, for all particles that made the same choices so far."""
    def categorical(self, site: str, logits: Like) -> Value:
        """A choice: its index, as a value."""
    def bernoulli(self, site: str, logits: Like) -> Value:
        """Zeros and ones, one for each logit."""
    def normal(self, site: str, mean: Like, sd: Like) -> Value:
        """Normal numbers, independent components."""
    def uniform(self, site: str, low: Like, high: Like) -> Value:
        """Numbers between low and high."""
    def gumbel(self, site: str, location: Like) -> Value:
        """Gumbel numbers of scale 1."""
    def concrete(self, site: str, logits: Like, temperature: Like) -> Value:
        """The logarithm of a point on the simplex."""
    def exponential(self, site: str, rate: Like) -> Value:
        """Exponential numbers."""
    def log_normal(self, site: str, mean: Like, sd: Like) -> Value:
        """Numbers whose logarithm is normal."""
    def laplace(self, site: str, location: Like, scale: Like) -> Value:
        """Laplace numbers."""
    def half_normal(self, site: str, scale: Like) -> Value:
        """The absolute value of a normal number."""
    def gumbel_scale(self, site: str, location: Like, scale: Like) -> Value:
        """Gumbel numbers."""
    def truncated_normal(self, site: str, mean: Like, sd: Like, low: Like, high: Like) -> Value:
        """Normal numbers between low and high, which may be infinite."""
    def gamma(self, site: str, shape: Any, rate: Like) -> Value:
        """Gamma numbers."""
    def inverse_gamma(self, site: str, shape: Any, scale: Like) -> Value:
        """1 over a Gamma number."""
    def beta(self, site: str, a: Like, b: Like) -> Value:
        """Beta numbers."""
    def student_t(self, site: str, degrees: Like, location: Like, scale: Like) -> Value:
        """Student's t."""
    def poisson(self, site: str, rate: Like) -> Value:
        """Poisson counts."""
    def geometric(self, site: str, logit: Like) -> Value:
        """Failures before the first success."""
    def binomial(self, site: str, trials: Like, logit: Like) -> Value:
        """Binomial counts."""
    def negative_binomial(self, site: str, shape: Any, logit: Like) -> Value:
        """Counts with mean shape * exp(logit)."""
    def dirichlet(self, site: str, concentrations: Like) -> Value:
        """A point on the simplex."""
    def multivariate_normal(self, site: str, mean: Like, factor: Like) -> Value:
        """A normal vector by the Cholesky factor of its covariance, row by row."""
    def multinomial(self, site: str, trials: Like, logits: Like) -> Value:
        """How often each of several things came."""
    def von_mises(self, site: str, location: Like, concentration: Like) -> Value:
        """Angles."""
    def delta(self, site: str, at: Like) -> Value:
        """Numbers that are certain."""
    def categoricals(self, site: str, logits: Like, n: int) -> Value:
        """n choices at once, each by its own part of the logits."""
    def site(self, name: str, family: Any, *parameters: Any) -> Value:
        """Visits a site with a distribution of one's own (rws.Family), or of the library by name."""
    def observe(self, name: str, log_density: Any, draw: Any = ...) -> Value:
        """An observation with a density of one's own: log_density(p, datum) is a value of one number, which gradients follow;
        draw(p) makes a datum for the sleep phase."""
    def mixture(self, site: str, logits: Like, components: Any) -> Value:
        """A mixture whose component is summed out; a component is (family, *parameters)."""
    def log_density(self, family: Any, value: Like, *parameters: Any) -> Value:
        """The log-density of a value, outside of any site."""
    def draw_from(self, family: Any, *parameters: Any) -> Value:
        """For the draw of a family: a value of another family, as a constant."""
    def noise_normal(self, n: int) -> Value:
        """For the draw of a family: n standard normal numbers."""
    def noise_uniform(self, n: int) -> Value:
        """For the draw of a family: n numbers in (0, 1)."""
    def draw_index(self, log_probabilities: Like) -> Value:
        """For the draw of a family: an index."""
    def choose(self, site: str, logits: Like) -> int:
        """A choice as an int, which Python code may branch on."""
    def flip(self, site: str, logit: Like) -> int:
        """0 or 1 as an int, which Python code may branch on."""
    def loop(self, *step: Any, **carry: Any) -> Any:
        """Calls step(p, c) until it returns False, and returns c. The attributes of c are what a step hands to the next:
        integers, the first of which is a clock that no step makes smaller, and values or None. Particles with equal integers
        are one path again. c.clear() sets integers to 0 and values to None."""
    def branch(self, v: Like) -> int:
        """The integer that v holds, as an int; int(v) is the same."""
    def look(self, v: Like) -> Numbers:
        """All numbers of v, for Python code. The path splits where particles differ."""
    def wait(self, values: Any) -> None:
        """Computes these values now, all together."""
    def observed(self, field: str) -> Value:
        """A field of the datum, for the guide."""
    def shape(self, field: str) -> tuple[int, ...]:
        """The numbers of a field, as numpy has it: (n,), or (most items, n) of a series with items of n numbers."""
    def length(self, series: str) -> int:
        """The number of items of a series of the datum, as an int, for the guide."""
    def item(self, series: str, t: int) -> Value:
        """Item t of a series of the datum, for the guide."""
    def items(self, series: str) -> list[Value]:
        """All items of a series of the datum, a list, for the guide."""
    def constant(self, x: Any) -> Value:
        """A value of a number, an array, a parameter or a list of values."""
    def simulate(self, site: str, made: Any, kernel: Any = ...) -> None:
        """An observation that Python made of its choices: an array, or a list that is filled up with zeros. The kernel is
        "edit" (minus the squared edit distance of sequences: length, then items), "equal" (0 or -inf), or a function of
        datum and made that returns a log-density."""
    def factor(self, name: str, log_weight: Like, in_prior: Any = ...) -> None:
        """Multiplies the model's density by exp(log_weight)."""
    def report(self, name: str, value: Any) -> None:
        """States something about the particles of this path."""
    def give_up(self, reason: Any) -> None:
        """Stops the pass with this message."""
    @property
    def reports(self) -> bool:
        """Whether reports are wanted, so that a program can save the work of making a text."""
    @property
    def reports_all(self) -> bool:
        """Whether they are for a person to read, so that large ones are worth making."""
    @property
    def iteration(self) -> int:
        """How many iterations of training came before this pass."""

class Setup:
    """The declarations of a model. Good during setup only."""
    def param(self, name: str, shape: Any, group: Any = ..., init: Any = ...) -> Param:
        """Declares a parameter of n or (rows, cols) numbers. It starts as "zero", "uniform", "truncated" or from an array. The
        group is "theta", the model's, or "phi", the guide's; by default it is phi for a name that begins with "phi.", else
        theta."""
    def linear(self, name: str, n_in: int, n_out: int, group: Any = ..., init: Any = ...) -> Layer:
        """Declares a linear layer."""
    def mlp(self, name: str, sizes: Any, hidden: Any = ..., group: Any = ..., init: Any = ...) -> Layer:
        """Declares a network of linear layers."""
    def rnn(self, name: str, n_in: int, n_hidden: int, group: Any = ..., init: Any = ...) -> Layer:
        """Declares a recurrent cell with tanh."""
    def gru(self, name: str, n_in: int, n_hidden: int, group: Any = ...) -> Layer:
        """Declares a gated recurrent cell, PyTorch's GRUCell."""
    def lstm(self, name: str, n_in: int, n_hidden: int, group: Any = ...) -> Layer:
        """Declares a recurrent cell with a memory, PyTorch's LSTMCell."""
    def bidirectional(self, name: str, n_in: int, n_hidden: int, cell: str = ..., group: Any = ...) -> Layer:
        """Declares two cells that read a series from both ends: "rnn", "gru" or "lstm"."""
    def attention(self, name: str, dim: int, heads: int, n_item: int, group: Any = ...) -> Layer:
        """Declares PyTorch's MultiheadAttention: a query of dim numbers over items of n_item numbers."""
    def set_encoder(self, name: str, sizes: Any, how: str = ..., hidden: str = ..., group: Any = ...) -> Layer:
        """Declares an encoder of sets: an mlp for each item, then the "sum", "mean" or "max" over the items."""
    def layer_norm(self, name: str, n: int, group: Any = ...) -> Layer:
        """Declares PyTorch's LayerNorm of n numbers."""
    def residual_mlp(self, name: str, n_in: int, width: int, n_blocks: int, n_out: int, hidden: str = ...,
                     group: Any = ...) -> Layer:
        """Declares an mlp whose blocks add to their input, for deep networks."""
    def conv2d(self, name: str, n_in: int, n_out: int, rows: int, cols: int, kernel: int, stride: int = ...,
               padding: int = ..., group: Any = ...) -> Layer:
        """Declares PyTorch's Conv2d for pictures of rows x cols numbers; Layer.picture is what comes out."""
    def conv_transpose2d(self, name: str, n_in: int, n_out: int, rows: int, cols: int, kernel: int, stride: int = ...,
                         padding: int = ..., output_padding: int = ..., group: Any = ...) -> Layer:
        """Declares PyTorch's ConvTranspose2d for pictures of rows x cols numbers."""
    def embedding(self, name: str, n_words: int, dim: int, group: Any = ...) -> Layer:
        """Declares a table of vectors."""
    def relaxed(self, site: str, n: int) -> None:
        """Declares the site that Model.relaxed is about."""
    def unused(self, name: str) -> None:
        """Says that the parameter of this name, or all parameters of the layer of this name, may have no gradient."""
    def label_site(self, label: str, site: str) -> None:
        """Says that a label is the value of a latent site where it is known, and NaN where it is not."""
    def gradient(self, site: str, how: str) -> None:
        """How the gradient reaches the parameters of a continuous value: "reparameterised", through the value, or by its
        "score". Without a choice it comes by score where a program branches on the value."""
    def sum(self, site: str) -> None:
        """All values of this choice are gone through in training and answers, in the place of a draw; the guide may leave the
        site out."""
    def text(self, name: str) -> str:
        """A setting of the model, as text."""
    def path(self, name: str) -> str:
        """A setting that is the path of a file; it becomes absolute."""
    def _field(self, name: str, dim: int, most: int, label: bool) -> None: ...
    def _is_input(self, name: str) -> None: ...
    def _numbers(self, name: str, train: np.ndarray, rows: int, columns: int, test: np.ndarray, n_test: int, order: int,
                 test_share: float, test_last: bool) -> Table: ...
    def _file(self, setting: str, test: Optional[str], test_share: float, test_last: bool, order: int, header: int,
              skip_missing: bool, tensor: Optional[str], id: Optional[str]) -> Table: ...

class Random:
    """A stream of random numbers, the same whenever the run is repeated."""
    def uniform(self) -> float:
        """A number in (0, 1)."""
    def normal(self) -> float:
        """A standard normal number."""
    def below(self, n: int) -> int:
        """An integer in 0 ... n - 1."""
    def uniforms(self, n: int) -> np.ndarray:
        """n numbers in (0, 1), as an array of float32."""
    def normals(self, n: int) -> np.ndarray:
        """n standard normal numbers, as an array of float32."""

class Family:
    """A family of distributions: log_density(p, value, *parameters) is a value of one number; draw(p, *parameters) draws from
    p.noise_normal, p.noise_uniform, p.draw_index or p.draw_from. Both are made of functions on values, so that gradients
    follow by themselves. At a site, guide and model may have different families of one support: real, positive, unit,
    interval (then bounds(p, *parameters) returns the lowest and the highest value), count, bits, simplex, log_simplex,
    partition, angle or certain. Keep it in a global or an attribute; Path.site visits a site with it."""
    def __init__(self, name: str, n_params: int, log_density: Callable[..., Like], draw: Optional[Callable[..., Like]] = ...,
                 support: str = ..., reparameterised: bool = ..., length: Optional[Callable[..., int]] = ...,
                 prepare: Optional[Callable[..., Sequence[Like]]] = ...,
                 bounds: Optional[Callable[..., tuple[Optional[Like], Optional[Like]]]] = ...) -> None: ...

def tanh(v: Like) -> Value:
    """tanh, component by component."""
def relu(v: Like) -> Value:
    """max(0, v), component by component."""
def elu(v: Like) -> Value:
    """v where v > 0, else exp(v) - 1."""
def sigmoid(v: Like) -> Value:
    """1 / (1 + exp(-v))."""
def softplus(v: Like) -> Value:
    """log(1 + exp(v))."""
def exp(v: Like) -> Value:
    """exp(v), component by component."""
def log(v: Like) -> Value:
    """log(v), component by component."""
def sqrt(v: Like) -> Value:
    """The square root, component by component."""
def square(v: Like) -> Value:
    """v * v, component by component."""
def sin(v: Like) -> Value:
    """sin(v), component by component."""
def cos(v: Like) -> Value:
    """cos(v), component by component."""
def abs(v: Like) -> Value:
    """The absolute value, component by component; abs(v) is the same."""
def log_sigmoid(v: Like) -> Value:
    """log(1 / (1 + exp(-v))), accurate for large |v|."""
def log1p(v: Like) -> Value:
    """log(1 + v), accurate near 0."""
def expm1(v: Like) -> Value:
    """exp(v) - 1, accurate near 0."""
def lgamma(v: Like) -> Value:
    """The logarithm of the gamma function."""
def digamma(v: Like) -> Value:
    """The derivative of lgamma."""
def log1mexp(v: Like) -> Value:
    """log(1 - exp(-v)) of v above 0, accurate for small and large v."""
def sum(v: Like) -> Value:
    """The sum of the components."""
def cumulative_sum(v: Like) -> Value:
    """Component j is the sum of components 0 ... j."""
def log_softmax(v: Like) -> Value:
    """v - log(sum(exp(v)))."""
def log_sum_exp(v: Like) -> Value:
    """log(sum(exp(v))), one number."""
def argmax(v: Like) -> Value:
    """The index of the largest component, as a value. It has no gradient."""
def diagonal(v: Like) -> Value:
    """The diagonal of a square matrix."""
def cholesky(v: Like) -> Value:
    """The lower triangle l with l l^T = v, a positive definite matrix."""
def log_determinant(v: Like) -> Value:
    """log det(l l^T) of a Cholesky factor l."""
def detach(v: Like) -> Value:
    """The same value as a constant: gradients stop here."""
def dot(a: Like, b: Like) -> Value:
    """The sum of a * b, which have the same length."""
def minimum(a: Like, b: Like) -> Value:
    """The smaller number, component by component."""
def maximum(a: Like, b: Like) -> Value:
    """The larger number, component by component."""
def power(a: Like, b: Like) -> Value:
    """a to the power of b."""
def matvec(a: Like, b: Like) -> Value:
    """The product of a matrix a, row after row, and a vector b."""
def add_diagonal(a: Like, b: Like) -> Value:
    """A square matrix a with b on its diagonal added: a number for each row, or one."""
def cholesky_solve(a: Like, b: Like) -> Value:
    """(a a^T)^-1 b for a Cholesky factor a; b has one or more columns."""
def pick(a: Like, b: Like) -> Value:
    """The component of a whose number is the value b; a[b] is the same."""
def concat(parts: Any) -> Value:
    """The parts, one behind the other, as one value."""
def sum_many(parts: Any) -> Value:
    """The sum of many values, component by component."""
def onehot(index: Like, n: int) -> Value:
    """A vector of n zeros with a one; costs a look-up where it enters a layer."""
def row(matrix: Like, index: Like, n: int = ...) -> Value:
    """Row number `index` of a parameter, or of a value with n columns."""
def clip(v: Like, low: Like, high: Like) -> Value:
    """v within low ... high; no gradient outside."""
def where(mask: Like, a: Like, b: Like) -> Value:
    """a where mask is above 0, else b. The other side has no part in value or gradient, even where it is infinite."""
def normal_density(x: Any, mean: Like, sd: Like) -> Value:
    """The log-density of x, outside of any site."""
def concrete_density(log_s: Like, log_pi: Like, temperature: Like) -> Value:
    """The log-density of the Concrete distribution."""
def relaxed_density(log_s: Like, log_pi: Like, temperature: Like) -> Value:
    """The log-density of the relaxed choice under the relaxation of the method."""
def matmul(a: Like, b: Like, inner: Optional[int] = ...) -> Value:
    """The product of two matrices, row after row. `inner` is the number of columns of a and of rows of b; it may be left out
    where one of them is a parameter or an array of two dimensions."""
def transpose(a: Like, cols: Optional[int] = ...) -> Value:
    """The transpose of a matrix with so many columns, which a parameter and an array of two dimensions know."""
def triangular_solve(l: Like, b: Like, transposed: bool = ...) -> Value:
    """l^-1 b for a lower triangle l, or (l^T)^-1 b; b has one or more columns."""
def dot_attention(query: Like, keys: Sequence[Like], values: Sequence[Like]) -> Value:
    """The mean of the values, weighted by softmax(query . key / sqrt(dim)); keys and values are lists."""
def pool2d(pictures: Like, channels: int, rows: int, size: int, how: str = ...) -> Value:
    """One number of each window of size x size numbers: their "max", "mean" or "sum"."""
def rank() -> int:
    """The number of this process among those that mpirun or srun started: 0 for the one that shows and writes."""
def n_ranks() -> int:
    """How many processes train together; 1 before the first trainer is made."""
def attend(image: Like, rows: int, cols: int, where: Like, out_rows: int, out_cols: int) -> Value:
    """Reads a window of a picture of rows x cols numbers as out_rows x out_cols of them. `where` is four numbers, (scale x,
    scale y, shift x, shift y): half the sides of the window and its middle, in a picture whose sides are at -1 and 1."""
def place(glimpse: Like, rows: int, cols: int, where: Like, out_rows: int, out_cols: int) -> Value:
    """Writes a glimpse of rows x cols numbers into a window of an empty picture of out_rows x out_cols; `where` as for attend:
    (scale x, scale y, shift x, shift y)."""
def cover(rows: int, cols: int, where: Like, out_rows: int, out_cols: int) -> Value:
    """The same as place for a glimpse of ones: what a window covers; `where` is (scale x, scale y, shift x, shift y)."""

class Table:
    """A table of data. Fields are declared of its columns during setup only."""
    def field(self, name: str, columns: Optional[str] = ...) -> int:
        """Declares a field; returns its numbers."""
    def label(self, name: str, columns: Optional[str] = ...) -> int:
        """Declares a label; returns its numbers."""
    def series(self, name: str, columns: Optional[str], most: int) -> int:
        """Declares a series of the rows of an id; returns the numbers of an item."""
    def row_series(self, name: str, columns: Optional[str], dim: int) -> int:
        """Declares a series within one row; returns the most items."""
    def length(self, name: str) -> None:
        """Declares a field: how many rows a datum has."""
    def rows(self, test: bool) -> int:
        """How many data there are, for training or for tests."""
    @property
    def columns(self) -> list[Optional[str]]:
        """The names of the columns; None for a column without a name."""
    @property
    def longest(self) -> int:
        """The most rows of an id; 1 without ids."""

class Eval:
    """One evaluation of a run."""
    def field(self, name: str) -> np.ndarray:
        """A field of all test data, n x dim."""
    def show(self, value: float, label: Optional[str] = ...) -> None:
        """Adds a number to the snapshot."""
    @property
    def size(self) -> int:
        """How many test data there are."""
    def _compute(self, f: Callable[[Path], Any], dim: int, n: int, arrays: list[np.ndarray]) -> np.ndarray: ...
    def _dream(self, program: Callable[[Path], Any], n: int) -> float: ...
    def _guess(self, f: Callable[[Particle, int], Any], particles: int, arrays: list[np.ndarray]) -> None: ...

class Particle:
    """One particle of a test datum."""
    def datum(self, field: str) -> np.ndarray:
        """A field of the particle's datum."""
    def report(self, name: str, time: int = ...) -> Any:
        """What the programs reported: a text, the first number of a value, or None."""

class Trainer:
    """A model in training, as the library has it; rws.Trainer stands on it."""
    def __init__(self, program: Optional[Program], config: dict[str, Any], folder: Optional[str], resume: bool) -> None: ...
    def step(self) -> None:
        """One iteration."""
    def evaluate(self) -> tuple[int, float, dict[str, float], float, float]:
        """Metrics: (iteration, seconds, values, error of log_evidence)."""
    def check(self) -> tuple[list[tuple[str, str, Optional[str], str]], float, int, int, int]:
        """Reviews the programs: (findings, seconds, rows, paths, calls); a finding is (kind, severity, about, text)."""
    def save(self) -> None:
        """Writes the checkpoint."""
    def train(self, stop: Optional[Callable[[], Any]], progress: Optional[Callable[[int, float], Any]],
              evaluated: Optional[Callable[[Any, bool], Any]], save_every: float) -> bool:
        """Trains to the end; False: stopped."""
    def stop(self) -> None:
        """Ends train after the present iteration."""
    def give(self, f: Optional[Callable[[int, int, list[np.ndarray]], Any]]) -> None:
        """Gives choices to training."""
    def params(self) -> list[tuple[str, str, np.ndarray]]:
        """Name, group and numbers of each parameter."""
    def set_param(self, name: str, values: Any) -> None:
        """Writes a parameter."""
    def gradient(self, draw: int, test: bool) -> np.ndarray:
        """The gradient that an iteration would step by."""
    def ask(self, *question: Any) -> dict[str, Any]:
        """Asks about a datum at the present parameters."""
    def close(self) -> None:
        """Gives back memory and threads."""
    @property
    def iteration(self) -> int:
        """How many iterations are done."""
    @property
    def seconds(self) -> float:
        """Seconds of training so far."""
    @property
    def config(self) -> dict[str, Any]:
        """The configuration, with all defaults."""
    @property
    def fields(self) -> list[tuple[str, int, bool, int, int, bool]]:
        """Name, numbers, whether it is a label, numbers of an item and most items of each field."""
    @property
    def warnings(self) -> str:
        """What a user should know about the run's folder; "" for nothing."""
    @property
    def unguided(self) -> Optional[str]:
        """A site for which the automatic guide has no network of its own; None."""
    @property
    def unlearned(self) -> Optional[str]:
        """A parameter whose gradient has always been zero; None."""
    @property
    def doubt(self) -> Optional[str]:
        """A warning of the look at the programs before the first iteration; None."""
    @property
    def impossible(self) -> Optional[str]:
        """A message about training data that no particle has explained; None."""
    @property
    def unvisited(self) -> Optional[str]:
        """A site of labels or gradients that no particle has visited; None."""

class Posterior:
    """A trained model, as the library has it; rws.Run stands on it."""
    def __init__(self, source: Union[Trainer, str], config: dict[str, Any] = ..., program: Optional[Program] = ...) -> None: ...
    def ask(self, *question: Any) -> dict[str, Any]:
        """Asks about a datum."""
    def ask_many(self, n: int, fields: Optional[list[Any]], texts: Optional[list[str]], pictures: Optional[tuple[int, int, np.ndarray]],
                 tests: Optional[list[int]], particles: int, seed: int, listed: bool, given: list[tuple[str, int, np.ndarray]],
                 threads: int, most_dim: int, told: Any) -> list[tuple[str, Any]]:
        """Asks about many data; the columns of a table."""
    def calibrate(self, simulations: int, particles: int, seed: int, threads: int,
                  told: Any) -> tuple[list[tuple[str, Any]], list[dict[str, Any]], int]:
        """Tests by simulation; ranks, quantities, impossible data."""
    def score(self, question: tuple[Any, ...], choices: list[tuple[str, int, np.ndarray]]) -> tuple[float, float]:
        """log p and log q of choices."""
    def sample(self, n: int, seed: int, inputs: Optional[tuple[Any, ...]]) -> list[tuple[Any, Any, Any]]:
        """Samples of the model; inputs: a question, or None."""
    def close(self) -> None:
        """Gives back memory and threads."""
    @property
    def iteration(self) -> int:
        """How many iterations were done."""
    @property
    def config(self) -> dict[str, Any]:
        """The configuration, with all defaults."""
    @property
    def fields(self) -> list[tuple[str, int, bool, int, int, bool]]:
        """Name, numbers, whether it is a label, numbers of an item and most items of each field."""
    @property
    def params(self) -> list[tuple[str, str, np.ndarray]]:
        """Name, group and numbers of each parameter."""

class Program:
    """A Python class as a model of the library."""
    def __init__(self, like: Any, name: str, help: str, settings: list[Any], metrics: list[Any], snapshots: list[Any],
                 defaults: dict[str, Any], has: list[str], ask_setting: Optional[str]) -> None: ...

class Scope:
    """Whether the parameters and layers of a setup can still be used."""

def answers_json(held: Any, listed: bool) -> str:
    """Answers as a JSON text."""
def results(paths: list[str], conditions: list[str]) -> list[dict[str, Any]]:
    """What the stores of runs say."""
def tables() -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """The models, methods and optimisers of the library."""
def _ranks_open() -> None: ...
def _ranks_close() -> None: ...
def _rank_lost() -> int: ...
