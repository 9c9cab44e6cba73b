import t from 'tap'
import { bid } from 'ratecard/chains/evm/fees'
import { gasWarning } from 'ratecard/chains/evm/gas-balance'
import { addressOf, randomKey } from '../../../../support/payment.ts'
import { networkNamed } from '../../../../support/shipped-catalog.ts'

t.test('bids for gas up to the operator’s limit', async (t) => {
  t.strictSame(bid({ base: 10n, tip: 3n }, 100n), { maxFeePerGas: 23n, maxPriorityFeePerGas: 3n })
  t.strictSame(bid({ base: 10n, tip: 3n }, 23n), { maxFeePerGas: 23n, maxPriorityFeePerGas: 3n })
  t.strictSame(bid({ base: 10n, tip: 3n }, 15n), { maxFeePerGas: 15n, maxPriorityFeePerGas: 3n })
  t.strictSame(bid({ base: 10n, tip: 3n }, 13n), { maxFeePerGas: 13n, maxPriorityFeePerGas: 3n })
  t.equal(bid({ base: 10n, tip: 3n }, 12n), undefined)
  t.strictSame(bid({ base: 0n, tip: 0n }, 1n), { maxFeePerGas: 0n, maxPriorityFeePerGas: 0n })
})

t.test('warns when gas is low, while some is left', async (t) => {
  const signer = addressOf(randomKey())
  const polygon = networkNamed('polygon')
  const line = (payments: bigint, balance: bigint): string | undefined =>
    gasWarning(polygon, signer, { kind: 'known', payments, balance })
  t.equal(line(200n, 5n), undefined)
  t.equal(
    line(199n, 1_500_000_000_000_000_000n),
    `x402: Polygon (eip155:137): signer ${signer} has 1.5 POL, for 199 more payments: send it more`,
  )
  t.match(line(0n, 12_000_000_000_000_000_000n), /has 12 POL, not enough for a payment/)
  t.equal(gasWarning(polygon, signer, { kind: 'unreachable' }), undefined)
})
