// Pays on Solana: finds wallets (Wallet Standard), writes the transfer of the price between the token accounts of payer and
// payee, and has it signed. The offer names a recent block, so that no node has to be asked.

const COMPUTE_BUDGET = 'ComputeBudget111111111111111111111111111111'
const TOKENS = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'
const TOKEN_ACCOUNTS = 'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL'
const MEMO = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr'

const [CONNECT, SIGN] = ['standard:connect', 'solana:signTransaction']

/** Calls back with every wallet that can sign here, also with those that come later. */
function find(take) {
  const register = (...wallets) => {
    for (const wallet of wallets) if (CONNECT in wallet.features && SIGN in wallet.features) take(wallet)
    return () => {}
  }
  const app = Object.freeze({ register })
  window.addEventListener('wallet-standard:register-wallet', ({ detail }) => detail(app))
  window.dispatchEvent(new CustomEvent('wallet-standard:app-ready', { detail: app }))
}

async function connect(wallet, { chain }) {
  const { accounts } = await wallet.features[CONNECT].connect()
  const account = accounts.find(({ chains }) => chains.includes(chain)) ?? accounts[0]
  if (account === undefined) throw new Error('it shows no account')
  return account
}

/** A transfer of the price, with the signature of the payer; the seller’s fee payer signs after it. */
async function sign(wallet, account, { accepted }, { chain, decimals }) {
  const { amount, asset, payTo, extra } = accepted
  const { feePayer, recentBlockhash, memo } = extra
  const [owner, mint] = [account.address, asset].map(bytesOf)
  const message = writeTransfer({
    signers: [bytesOf(feePayer), owner],
    source: await tokenAccountOf(owner, mint),
    destination: await tokenAccountOf(bytesOf(payTo), mint),
    mint,
    amount: BigInt(amount),
    decimals: Number(decimals),
    // Two purchases of one price in a block would otherwise be one transaction.
    memo: new TextEncoder().encode(memo || randomText()),
    blockhash: bytesOf(recentBlockhash),
  })
  const transaction = join(Uint8Array.of(2), new Uint8Array(128), message)
  const [{ signedTransaction }] = await wallet.features[SIGN].signTransaction({ account, transaction, chain })
  return { payload: { transaction: toBase64(signedTransaction) } }
}

/** A message of version 0: limit and price of its work, the transfer, a memo. */
function writeTransfer({ signers, source, destination, mint, amount, decimals, memo, blockhash }) {
  const [budget, tokens, memos] = [COMPUTE_BUDGET, TOKENS, MEMO].map(bytesOf)
  const accounts = [...signers, source, destination, mint, budget, tokens, memos]
  const [OWNER, SOURCE, DESTINATION, MINT, BUDGET, PROGRAM, MEMOS] = [1, 2, 3, 4, 5, 6, 7]
  const instructions = [
    { program: BUDGET, uses: [], data: join(Uint8Array.of(2), number(20_000n, 4)) },
    { program: BUDGET, uses: [], data: join(Uint8Array.of(3), number(1n, 8)) },
    {
      program: PROGRAM,
      uses: [SOURCE, MINT, DESTINATION, OWNER],
      data: join(Uint8Array.of(12), number(amount, 8), Uint8Array.of(decimals)),
    },
    { program: MEMOS, uses: [], data: memo },
  ]
  // Two sign, of which the second account is not changed, nor are the mint and the three programs.
  return join(
    Uint8Array.of(0x80, 2, 1, 4, accounts.length),
    ...accounts,
    blockhash,
    Uint8Array.of(instructions.length),
    ...instructions.flatMap(({ program, uses, data }) => [
      Uint8Array.of(program, uses.length, ...uses),
      length(data),
      data,
    ]),
    Uint8Array.of(0),
  )
}

/** The account that holds the tokens of an owner: an address off the curve, for which no key exists. */
async function tokenAccountOf(owner, mint) {
  const [tokens, program] = [TOKENS, TOKEN_ACCOUNTS].map(bytesOf)
  const marker = new TextEncoder().encode('ProgramDerivedAddress')
  for (let bump = 255; bump >= 0; bump -= 1) {
    const seeds = join(owner, tokens, mint, Uint8Array.of(bump), program, marker)
    const address = new Uint8Array(await crypto.subtle.digest('SHA-256', seeds))
    if (!isOnCurve(address)) return address
  }
  throw new Error('an owner has no token account')
}

const P = 2n ** 255n - 19n
/** −121665/121666 (RFC 8032, 5.1). */
const D =
  37_095_705_934_669_439_343_138_083_508_754_565_189_542_113_879_843_219_016_388_785_533_085_940_283_555n

/** Whether bytes are a point of edwards25519: whether x² = (y² − 1) / (d·y² + 1) has a root. */
function isOnCurve(bytes) {
  const y = (bytes.reduceRight((value, byte) => value * 256n + BigInt(byte), 0n) & (2n ** 255n - 1n)) % P
  const square = (y * y) % P
  const product = ((square - 1n + P) * (D * square + 1n)) % P
  return product === 0n || power(product, (P - 1n) / 2n) === 1n
}

function power(base, exponent) {
  let [result, factor] = [1n, base % P]
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * factor) % P
    factor = (factor * factor) % P
  }
  return result
}

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/** The 32 bytes of an address or a hash in base58. */
function bytesOf(text) {
  let value = 0n
  for (const letter of text) {
    const digit = ALPHABET.indexOf(letter)
    if (digit === -1) throw new Error(`${text} is no address`)
    value = value * 58n + BigInt(digit)
  }
  return number(value, 32).reverse()
}

/** A number in so many bytes, lowest first. */
function number(value, size) {
  return Uint8Array.from({ length: size }, (_, place) => Number((value >> BigInt(8 * place)) & 255n))
}

/** In seven bits a byte, lowest first. */
function length({ length: size }) {
  return size < 128 ? Uint8Array.of(size) : Uint8Array.of((size & 127) | 128, size >> 7)
}

function join(...parts) {
  return Uint8Array.from(parts.flatMap((part) => [...part]))
}

function randomText() {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
}

function toBase64(bytes) {
  return btoa(String.fromCharCode(...bytes))
}

/** The sandbox signs for visitors without a wallet; `request` asks it. */
function remote({ request }) {
  return {
    features: {
      [CONNECT]: {
        connect: async () => ({
          accounts: (await request({ method: CONNECT })).map((address) => ({ address, chains: [] })),
        }),
      },
      [SIGN]: {
        signTransaction: async ({ transaction }) => {
          const signed = await request({ method: SIGN, params: [toBase64(transaction)] })
          return [{ signedTransaction: Uint8Array.from(atob(signed), (letter) => letter.charCodeAt(0)) }]
        },
      },
    },
  }
}

export const solana = {
  name: 'solana',
  find,
  remote,
  connect,
  sign,
  /** A wallet does not tell what it holds. */
  missing: async () => 0n,
  /** What an offer of it has to name. */
  needs: 'recentBlockhash',
}
