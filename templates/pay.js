// Pays for a request: asks for the offer, has a wallet sign it (EIP-1193, EIP-712; Wallet Standard on Solana), and sends the
// signed payment (x402 v2) until the answer is there. A payment is kept in the tab until then, so that none is signed twice.

import { dress, element, present, reasonsOf } from './answer.js'
import { solana } from './pay-solana.js'

const ATTEMPTS = 5

/** The wallets of this browser by the name they announce: how each is asked on EVM networks (EIP-6963), and on Solana. */
const announced = new Map()
/** The one that announces no name. */
const UNNAMED = 'your wallet'

/** The icon of a wallet, drawn from its bytes: the policy of the page allows no picture of an address that is not ours. */
async function drawIcon(canvas, icon) {
  const [, type, data] = /^data:(image\/(?:png|webp|jpeg|gif));base64,([\w+/=]+)$/.exec(icon) ?? []
  if (data === undefined) throw new Error('no picture in bytes')
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0))
  const picture = await createImageBitmap(new Blob([bytes], { type }))
  canvas.getContext('2d').drawImage(picture, 0, 0, canvas.width, canvas.height)
}

function iconOf({ name, icon }) {
  const initial = element('span', { className: 'initial', ariaHidden: 'true' }, name.charAt(0))
  const canvas = element('canvas', { width: 48, height: 48, ariaHidden: 'true' })
  drawIcon(canvas, icon).then(
    () => initial.replaceWith(canvas),
    () => {},
  )
  return initial
}

/** The sandbox signs for visitors without a wallet. */
const remoteWallet = (path) => ({
  async request(call) {
    const answer = await fetch(path, { method: 'POST', body: JSON.stringify(call) })
    const { result, error } = await answer.json()
    if (error !== undefined) throw error
    return result
  },
})

/** A failure of which the visitor has to know more than its message. */
class Stop extends Error {}

function facts(rows) {
  const given = rows.filter(([, value]) => value)
  return element(
    'dl',
    { className: 'facts' },
    ...given.flatMap(([term, value]) => [element('dt', {}, term), element('dd', {}, value)]),
  )
}

/** Whether an offer is the one whose terms the page shows. */
function isShown({ scheme, network, amount, asset, payTo }, terms) {
  const isSame = scheme === terms.scheme && network === terms.network && asset === terms.asset
  return isSame && amount === terms.amount && payTo === terms.payee
}

async function selectChain(wallet, { chain, name, coin, rpc, explorer }) {
  if ((await wallet.request({ method: 'eth_chainId' })) === chain) return
  const select = { method: 'wallet_switchEthereumChain', params: [{ chainId: chain }] }
  try {
    await wallet.request(select)
  } catch (fault) {
    const code = fault.data?.originalError?.code ?? fault.code
    if (code !== 4902) throw fault
    const network = {
      chainId: chain,
      chainName: name,
      nativeCurrency: { name: coin, symbol: coin, decimals: 18 },
      rpcUrls: [rpc],
      blockExplorerUrls: explorer === '' ? [] : [explorer],
    }
    await wallet.request({ method: 'wallet_addEthereumChain', params: [network] })
    await wallet.request(select)
  }
}

const TYPES = {
  EIP712Domain: [
    { name: 'name', type: 'string' },
    { name: 'version', type: 'string' },
    { name: 'chainId', type: 'uint256' },
    { name: 'verifyingContract', type: 'address' },
  ],
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
}

/** Permit2 and the proxy of scheme upto, at the same addresses on every network. */
const PERMIT2 = '0x000000000022D473030F116dDEE9F6B43aC78BA3'
const UPTO_PROXY = '0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002'

const PERMIT_TYPES = {
  EIP712Domain: [
    { name: 'name', type: 'string' },
    { name: 'chainId', type: 'uint256' },
    { name: 'verifyingContract', type: 'address' },
  ],
  PermitWitnessTransferFrom: [
    { name: 'permitted', type: 'TokenPermissions' },
    { name: 'spender', type: 'address' },
    { name: 'nonce', type: 'uint256' },
    { name: 'deadline', type: 'uint256' },
    { name: 'witness', type: 'Witness' },
  ],
  TokenPermissions: [
    { name: 'token', type: 'address' },
    { name: 'amount', type: 'uint256' },
  ],
  Witness: [
    { name: 'to', type: 'address' },
    { name: 'facilitator', type: 'address' },
    { name: 'validAfter', type: 'uint256' },
  ],
}

const APPROVAL_TYPES = {
  EIP712Domain: TYPES.EIP712Domain,
  Permit: [
    { name: 'owner', type: 'address' },
    { name: 'spender', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'nonce', type: 'uint256' },
    { name: 'deadline', type: 'uint256' },
  ],
}

/** The kinds of networks, each with how its wallets are found and asked. */
const evm = {
  name: 'evm',
  find: (take) => {
    window.addEventListener('eip6963:announceProvider', ({ detail }) => take(detail))
    window.dispatchEvent(new Event('eip6963:requestProvider'))
  },
  remote: (wallet) => wallet,
  connect: async (wallet, dataset) => {
    const [account] = await wallet.request({ method: 'eth_requestAccounts' })
    await selectChain(wallet, dataset)
    return account
  },
  sign: (wallet, account, offer) =>
    (offer.accepted.scheme === 'upto' ? signPermit : signTransfer)(wallet, account, offer),
  missing,
  needs: undefined,
}

function kindOf({ network }) {
  return network.startsWith('solana:') ? solana : evm
}

function chainIdOf({ network }) {
  return Number(network.split(':')[1])
}

/** The domain of a token. */
function domainOf({ extra: { name, version }, network, asset }) {
  return { name, version, chainId: chainIdOf({ network }), verifyingContract: asset }
}

function randomWord() {
  const bytes = [...crypto.getRandomValues(new Uint8Array(32))]
  return `0x${bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')}`
}

function signData(wallet, account, types, primaryType, domain, message) {
  const data = { types, primaryType, domain, message }
  return wallet.request({ method: 'eth_signTypedData_v4', params: [account, JSON.stringify(data)] })
}

/** A transfer of the price (EIP-3009). */
async function signTransfer(wallet, account, { accepted, now }) {
  const authorization = {
    from: account,
    to: accepted.payTo,
    value: accepted.amount,
    validAfter: '0',
    validBefore: String(Math.floor(now / 1000) + accepted.maxTimeoutSeconds),
    nonce: randomWord(),
  }
  const domain = domainOf(accepted)
  const signature = await signData(wallet, account, TYPES, 'TransferWithAuthorization', domain, authorization)
  return { payload: { signature, authorization } }
}

/** A transfer of at most the ceiling (Permit2), and an approval of it where Permit2 may not move so much (EIP-2612). */
async function signPermit(wallet, account, { challenge, accepted, now }) {
  const { asset, amount, payTo, maxTimeoutSeconds, extra } = accepted
  const owner = wordOf(account)
  const allowance = await readToken(wallet, asset, `0xdd62ed3e${owner}${wordOf(PERMIT2)}`)
  const isApproved = allowance >= BigInt(amount)
  const sponsored = challenge.extensions?.eip2612GasSponsoring !== undefined
  if (!isApproved && !sponsored)
    throw new Stop(
      `Permit2 may not move this amount for your wallet. Approve it once: in the token ${asset}, call approve with the spender ${PERMIT2} and the amount ${amount}.`,
    )
  const deadline = String(Math.floor(now / 1000) + maxTimeoutSeconds)
  const witness = { to: payTo, facilitator: extra.facilitatorAddress, validAfter: '0' }
  const nonce = String(BigInt(randomWord()))
  const message = { permitted: { token: asset, amount }, spender: UPTO_PROXY, nonce, deadline, witness }
  const domain = { name: 'Permit2', chainId: chainIdOf(accepted), verifyingContract: PERMIT2 }
  const signature = await signData(wallet, account, PERMIT_TYPES, 'PermitWitnessTransferFrom', domain, message)
  const payload = { signature, permit2Authorization: { from: account, ...message } }
  if (isApproved) return { payload }
  const number = String(await readToken(wallet, asset, `0x7ecebe00${owner}`))
  const approval = { owner: account, spender: PERMIT2, value: amount, nonce: number, deadline }
  const info = {
    from: account,
    asset,
    spender: PERMIT2,
    amount,
    nonce: number,
    deadline,
    signature: await signData(wallet, account, APPROVAL_TYPES, 'Permit', domainOf(accepted), approval),
    version: '1',
  }
  return { payload, extensions: { eip2612GasSponsoring: { info } } }
}

/** The payment as the value of its header. */
function write({ challenge, accepted }, signed) {
  const { x402Version, resource } = challenge
  const extensions = { ...challenge.extensions, ...signed.extensions }
  const payment = { x402Version, resource, accepted, payload: signed.payload, extensions }
  return btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(payment))))
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

const CHARGES = {
  no: 'Nothing was charged.',
  yes: 'The payment was charged. Send the same one again to get its answer.',
  unknown: 'Not known yet. Send the same payment again: it is charged once at most.',
}

/** What tells one request of a tab from others: a payment is for its method, address and body. */
function nameOf({ url, options: { method = 'GET', body = '' } }) {
  const sent = typeof body === 'string' ? body : `${body.name} ${body.size} ${body.lastModified}`
  return `payment for ${method} ${url} ${sent}`
}

/** How much of a token the account lacks for an amount, where the wallet tells: 0 when it has enough. */
async function missing(wallet, account, { amount, asset }) {
  const lacks = BigInt(amount) - (await readToken(wallet, asset, `0x70a08231${wordOf(account)}`))
  return lacks > 0n ? lacks : 0n
}

/** An address as a word of calldata. */
function wordOf(address) {
  return address.slice(2).toLowerCase().padStart(64, '0')
}

/** A number that a token has, by the node of the wallet. */
async function readToken(wallet, asset, data) {
  return BigInt(await wallet.request({ method: 'eth_call', params: [{ to: asset, data }, 'latest'] }))
}

/** Atomic units of a token as people write them. */
function spell(units, { due, amount }) {
  const [number, symbol] = due.split(' ')
  const decimals = decimalsOf(number, amount)
  const digits = String(units).padStart(decimals + 1, '0')
  const fraction = decimals === 0 ? '' : digits.slice(-decimals).replace(/0+$/, '')
  return `${digits.slice(0, digits.length - decimals)}${fraction && `.${fraction}`} ${symbol}`
}

/** The decimals of a token, of which an amount is known in both forms. */
function decimalsOf(number, amount) {
  const [, fraction = ''] = number.split('.')
  const digits = BigInt(number.replace('.', ''))
  let decimals = fraction.length
  for (let units = digits; units < BigInt(amount); units *= 10n) decimals += 1
  return decimals
}

function showIn(section) {
  const outcome = section.querySelector('[id="wallet.outcome"]')
  return (title, ...parts) => {
    outcome.replaceChildren(element('h3', { tabIndex: -1 }, title), ...parts)
    outcome.firstChild.focus()
  }
}

/** Lets a wallet pay for a request in the part of a page that shows its offers; `show` puts what comes of it into the page. */
export function openWallet(section, request, show = showIn(section)) {
  const { url, options } = request
  const kept = nameOf(request)
  const buttons = [...section.querySelectorAll('button')]
  const status = section.querySelector('[id="wallet.status"]')
  let isConcluded = false
  let payer

  function say(words) {
    status.textContent = words
  }

  function conclude(title, ...parts) {
    say('')
    isConcluded = true
    show(title, ...parts)
  }

  function ask(headers) {
    return fetch(url, { ...options, headers: { ...options.headers, ...headers }, cache: 'no-store' })
  }

  /** Asks again where the offer lacks what its network needs for a moment. */
  async function readOffer(terms, { needs }) {
    for (let attempt = 1; ; attempt += 1) {
      const offer = await readOfferOnce(terms)
      if (needs === undefined || offer.accepted.extra[needs] !== undefined) return offer
      if (attempt === ATTEMPTS)
        throw new Stop(
          `The offer names no recent block of ${terms.name}, which this page needs: pay on another network, or from a program.`,
        )
      await pause(500)
    }
  }

  async function readOfferOnce(terms) {
    const answer = await ask({ Accept: 'application/json' })
    const header = answer.headers.get('PAYMENT-REQUIRED')
    if (answer.status !== 402 || header === null)
      throw new Stop(`This address answers ${answer.status} now. Load the page again.`)
    const challenge = JSON.parse(atob(header))
    const accepted = challenge.accepts.find((offer) => isShown(offer, terms))
    if (accepted === undefined) throw new Stop('The offer has changed. Load the page again to see the new one.')
    // The clock of the seller: it judges whether a payment has expired.
    return { challenge, accepted, now: Date.parse(answer.headers.get('Date')) || Date.now() }
  }

  /** Sends one payment until it is decided: the same one again is charged once at most. */
  async function send(payment) {
    say('The payment is sent.')
    for (let attempt = 1; ; attempt += 1) {
      const isLast = attempt === ATTEMPTS
      try {
        const answer = await ask({ 'PAYMENT-SIGNATURE': payment, Accept: 'application/json, */*;q=0.5' })
        const body = await answer.blob()
        const wait = Number(answer.headers.get('Retry-After'))
        if (answer.status < 500 || !wait || isLast) return showAnswer(answer, body)
        say('The payment is not decided yet. The same one is sent again: it is charged once at most.')
        await pause(wait * 1000)
      } catch {
        if (isLast) return showLost()
        say('The connection was lost. The same payment is sent again: it is charged once at most.')
        await pause(attempt * 1000)
      }
    }
  }

  function showLost() {
    const words =
      'The payment may have been charged. Do not sign another: the same one is answered when it is sent again.'
    conclude('No answer has arrived', element('p', {}, words), againButton())
  }

  function againButton() {
    const button = element('button', { type: 'button' }, 'Send the same payment again')
    button.addEventListener('click', () => work(() => send(sessionStorage.getItem(kept))))
    return element('p', {}, button)
  }

  async function showAnswer(answer, body) {
    const { headers, ok } = answer
    const receipt = JSON.parse(atob(headers.get('PAYMENT-RESPONSE') ?? btoa('{}')))
    const { network, page, ...terms } = rowOf(receipt.network)
    const amount = terms.due && receipt.amount ? spell(receipt.amount, terms) : (terms.due ?? 'the price')
    const most = terms.scheme === 'upto' ? terms.due : ''
    const payment = headers.get('Ratecard-Payment')
    const transaction = receipt.transaction
    const href = page?.replace('TRANSACTION', transaction)
    const link = href ? element('a', { href }, transaction) : transaction
    if (ok) {
      sessionStorage.removeItem(kept)
      const earlier = headers.get('Ratecard-Charged') === 'earlier'
      conclude(
        'Answer',
        await present(body),
        facts([
          ['Authorized', most && `at most ${most}`],
          ['Charged', earlier ? 'nothing now: an earlier payment has paid for it' : `${amount} on ${network}`],
          ['Payment', payment],
          ['Transaction', transaction && link],
          ['Payer', receipt.payer],
        ]),
      )
      return
    }
    const problem = await body.text().then(JSON.parse).catch(() => ({}))
    const { title, detail, hint, code = '', retryable, charged = 'unknown' } = problem
    const isOpen = retryable === true || charged !== 'no'
    if (!isOpen) sessionStorage.removeItem(kept)
    conclude(
      title ?? `Answer ${answer.status}`,
      element('p', {}, [reasonsOf(detail), hint].filter(Boolean).join('. ').replaceAll('..', '.')),
      facts([
        ['Charged', CHARGES[charged]],
        ['Missing', /balance/.test(code) ? await spellMissing() : ''],
        ['Payment', payment],
        ['Transaction', transaction && link],
      ]),
      ...(isOpen ? [againButton()] : []),
    )
  }

  /** What the wallet has to be given before it can pay; empty where it does not tell. */
  async function spellMissing() {
    try {
      const { kind, wallet, account, dataset } = payer
      const lacks = await kind.missing(wallet, account, dataset)
      return lacks === 0n ? '' : `${spell(lacks, dataset)} on ${dataset.name}, in ${account}`
    } catch {
      return ''
    }
  }

  /** What the page says of a network. */
  function rowOf(id) {
    const { name = id, due, amount, scheme, page } =
      buttons.find(({ dataset }) => dataset.network === id)?.dataset ?? {}
    return { network: name, due, amount, scheme, page }
  }

  async function pay({ dataset }) {
    const kind = kindOf(dataset)
    const wallet = dataset.wallet === undefined ? chosen(kind) : kind.remote(remoteWallet(dataset.wallet))
    say('Waiting for the wallet to connect.')
    const account = await kind.connect(wallet, dataset)
    const offer = await readOffer(dataset, kind)
    payer = { kind, wallet, account, dataset }
    const most = dataset.scheme === 'upto' ? 'at most ' : ''
    say(`Confirm in the wallet: ${most}${dataset.due} on ${dataset.name} to ${dataset.payee}.`)
    const payment = write(offer, await kind.sign(wallet, account, offer, dataset))
    sessionStorage.setItem(kept, payment)
    await send(payment)
  }

  /** One thing at a time, and no new payment while one is open. */
  async function work(task) {
    section.ariaBusy = 'true'
    for (const button of buttons) button.disabled = true
    try {
      await task()
    } catch (fault) {
      const said =
        fault instanceof Stop
          ? fault.message
          : `The wallet says: ${String(fault.message ?? fault).replace(/\.$/, '')}.`
      const open = sessionStorage.getItem(kept) !== null
      const words = element('p', {}, `${said} ${open ? CHARGES.unknown : CHARGES.no}`)
      conclude('Not paid', words, ...(open ? [againButton()] : []))
    }
    const isOpen = sessionStorage.getItem(kept) !== null
    for (const button of buttons) button.disabled = isOpen
    section.ariaBusy = 'false'
  }

  const actions = section.querySelector('.actions')
  const picker = element('fieldset', { className: 'wallets', hidden: true })
  actions.before(picker)

  /** What asks the wallet that was picked, the only one, or the one that has no name; undefined when it cannot pay there. */
  function chosen({ name }) {
    const picked = picker.querySelector('input:checked')?.value
    const [first = { evm: window.ethereum }] = announced.values()
    return (announced.get(picked) ?? first)[name]
  }

  /** Names the wallet in its buttons, and shows those of networks that it can pay on. */
  function nameButtons() {
    const picked = picker.querySelector('input:checked')?.value
    const [first] = announced.keys()
    for (const button of buttons) {
      if (button.dataset.wallet !== undefined) button.hidden = false
      else {
        button.textContent = button.textContent.replace(/ with .*$/, ` with ${picked ?? first ?? UNNAMED}`)
        button.hidden = chosen(kindOf(button.dataset)) === undefined
      }
    }
  }

  function offerWallets() {
    const picked = picker.querySelector('input:checked')?.value
    picker.replaceChildren(
      element('legend', {}, 'Wallet'),
      ...[...announced.values()].map(({ info }, place) =>
        element(
          'label',
          {},
          element('input', {
            type: 'radio',
            name: 'wallet',
            value: info.name,
            checked: picked === undefined ? place === 0 : picked === info.name,
          }),
          iconOf(info),
          info.name,
        ),
      ),
    )
    picker.hidden = announced.size === 0
    nameButtons()
    if (buttons.every(({ hidden }) => hidden))
      say('No wallet was found in this browser. Any wallet extension that holds the token can pay here.')
    else if (!isConcluded) say('')
  }

  picker.addEventListener('change', nameButtons)
  for (const button of buttons) button.addEventListener('click', () => work(() => pay(button)))
  /** A wallet may announce itself for each kind of network. */
  const announce = (info, means) => {
    announced.set(info.name, { ...announced.get(info.name), info, ...means })
    offerWallets()
  }
  offerWallets()
  const kinds = new Set(buttons.map(({ dataset }) => kindOf(dataset)))
  if (kinds.has(evm)) evm.find(({ info, provider }) => announce(info, { evm: provider }))
  if (kinds.has(solana)) solana.find((wallet) => announce(wallet, { solana: wallet }))
  if (sessionStorage.getItem(kept) !== null) {
    for (const button of buttons) button.disabled = true
    const words = 'This tab has signed a payment for this request and has no answer to it yet.'
    conclude('A payment is open', element('p', {}, words), againButton())
  }
}

const own = document.querySelector('#wallet:not(form *)')
for (const pre of document.querySelectorAll('main > pre')) dress(pre)
if (own !== null) openWallet(own, { url: location.pathname + location.search, options: {} })
