/**
 * SASL GSSAPI (Kerberos 5), through the optional package `kerberos`.
 *
 * Tokens go to and fro until both sides trust the ticket; then the server says which protection it
 * offers for what follows, and we answer that none is wanted (RFC 4752), as ZooKeeper has none.
 */

import { ArgumentError, checkOptions } from '../support/index.ts';
import type { SaslExchange, SaslMechanism } from './auth.ts';
import { kerberosTable } from './option-tables.ts';

/** The part of the `kerberos` package that is used. Tokens are base64 text there. */
export interface KerberosModule {
  initializeClient(
    servicePrincipal: string,
    options: { mechOID?: number; principal?: string },
  ): Promise<KerberosContext>;
  GSS_MECH_OID_KRB5?: number;
}

export interface KerberosContext {
  readonly contextComplete: boolean;
  readonly username?: string;
  step(challenge: string): Promise<string | null>;
  wrap(challenge: string, options: { user?: string }): Promise<string>;
  unwrap(challenge: string): Promise<string>;
}

export interface KerberosOptions {
  /** First part of the servers' principal. `zookeeper`, unless `zookeeper.sasl.client.username` differs there. */
  readonly service?: string;
  /** Host part of the servers' principal, where it is not the host name in the connection string. */
  readonly host?: string;
  /** Ours, such as `app@EXAMPLE.COM`; the default of the ticket cache unless said. */
  readonly principal?: string;
  /** The package, for whoever has loaded it already. */
  readonly module?: KerberosModule;
}

export function kerberos(options: KerberosOptions = {}): SaslMechanism {
  checkOptions('kerberos', options, kerberosTable);
  const { service = 'zookeeper', principal } = options;
  if (service === '' || service.includes('@')) {
    throw new ArgumentError(
      'service',
      'the first part of a principal is wanted, such as zookeeper',
    );
  }
  return async ({ host }) => {
    const module = options.module ?? (await loadKerberos());
    const { GSS_MECH_OID_KRB5: mechOID } = module;
    const context = await module.initializeClient(`${service}@${options.host ?? host.name}`, {
      ...(mechOID === undefined ? {} : { mechOID }),
      ...(principal === undefined ? {} : { principal }),
    });
    return exchange(context, principal);
  };
}

function exchange(context: KerberosContext, principal: string | undefined): SaslExchange {
  let isWrapped = false;
  return {
    start: async () => bytes(await context.step('')),
    async step(token) {
      if (isWrapped) return null;
      const challenge = token.toString('base64');
      if (!context.contextComplete) {
        const answer = await context.step(challenge);
        // Nothing to say, or the ticket is accepted: an empty token asks for the last step.
        return bytes(answer);
      }
      isWrapped = true;
      const offer = await context.unwrap(challenge);
      const user = principal ?? context.username;
      return bytes(await context.wrap(offer, user === undefined ? {} : { user }));
    },
  };
}

function bytes(text: string | null): Buffer {
  return Buffer.from(text ?? '', 'base64');
}

async function loadKerberos(): Promise<KerberosModule> {
  try {
    const loaded: { default?: KerberosModule } & KerberosModule = await import('kerberos');
    return loaded.default ?? loaded;
  } catch (error) {
    throw new Error(
      'Kerberos needs the package "kerberos", which is not installed or does not load: npm install kerberos',
      { cause: error },
    );
  }
}
