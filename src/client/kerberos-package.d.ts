/** The optional package has no types here: `KerberosModule` says what is used of it. */
declare module 'kerberos';
