import type { HandlerWithPreview } from './catalog.ts'

/** Confirms that the service responds and that a payment goes through; the transaction travels in the receipt header. */
export const ping: HandlerWithPreview<'ping'> = {
  run: async ({ nonce }, { now, payment }) => ({
    source: [{ name: 'computed' }],
    body: {
      ok: true,
      pong: true,
      nonce: nonce ?? null,
      server_time: now().toISOString(),
      ...(payment && {
        payment: { protocol: payment.protocol, network: payment.network, payer: payment.payer },
      }),
    },
  }),
  preview: ({ nonce: _nonce, payment: _payment, ...rest }) => rest,
}
